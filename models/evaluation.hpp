// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Evaluation of a network on held-out samples: forwards without backwards, loss and
// accuracy.

#include "kernels/cross_entropy.hpp"
#include "kernels/processor.hpp"
#include "models/data/data_set.hpp"
#include "models/forward_layers.hpp"

#include <algorithm>
#include <atomic>
#include <list>
#include <optional>
#include <span>
#include <vector>

namespace troupe {

/// The quality of a network on samples that training has not seen.
struct score {
  double loss = 0; ///< Mean over predictions, in nats.
  /// Fraction of predictions that are right; only for classifiers.
  std::optional<double> accuracy;
};

/// Largest number of samples of a forward, in evaluations during a training: from 1 to
/// 64.
/// \param batch samples of a batch of the training
inline std::int64_t evaluation_batch(std::int64_t batch) {
  return std::clamp<std::int64_t>(batch, 1, 64);
}

/// Samples of one forward of an evaluation: as many as have 512 rows of activations,
/// but at least 1 and at most `batch`. Products of fewer rows are slower.
/// \pre batch >= 1
std::int64_t samples_a_forward(const network<float>& whole, std::int64_t batch);

/// Contiguous layers of a network that evaluate samples. Layers up to the network's end
/// also compute the loss.
class scored_layers {
public:
  /// Layers [first, last) of `whole`.
  /// \param samples largest number of samples of a forward
  /// \param threads of the streams
  /// \param account outlives this object
  scored_layers(const network<float>& whole, int first, int last, std::int64_t samples,
                int threads, memory_account& account);

  /// Bytes that the layers' buffers take, without parameters.
  static std::int64_t bytes(const network<float>& whole, int first, int last,
                            std::int64_t samples, int threads);

  bool is_last() const { return last_; }
  const layer_list<float>& layers() const { return layers_; }

  /// Computes the layers' forward on the stream of `in`.
  /// \param in samples, tokens or x, and the stream; also y, except for the last layers
  /// \param labels for the last layers
  /// \param parameters one bucket for each layer
  /// \param loss of the last layers, summed over predictions; other layers leave `loss`
  /// unchanged. Overwritten, and complete when the work on the stream has ended
  void forward(const frame<float>& in, const std::int32_t* labels,
               std::span<const float* const> parameters, loss_sum& loss) const;

private:
  layer_list<float> layers_;
  bool last_;
  std::int64_t rows_, classes_;
  forward_buffers buffers_;
  tensor_memory logits_, row_losses_;
};

/// The score: the mean loss over all predictions, and the accuracy of a classifier.
/// \param sum over predictions of `samples` samples
score score_of(const network<float>& whole, const loss_sum& sum, std::int64_t samples);

/// Layers of an evaluation that one processor computes, from the end of the previous
/// part on.
struct evaluated_part {
  int end;         ///< One past the last layer, counted over the network.
  processor where; ///< The processor that runs the forwards.

  bool operator==(const evaluated_part&) const = default;
};

/// Runs forwards of a whole network on held-out samples, one part of the layers after
/// another. One thread at a time may use an evaluator.
class evaluator {
public:
  /// \param data outlives this object
  /// \param most largest number of samples, from the first held-out sample on
  /// \param batch largest number of samples of a forward
  /// \param threads of the CPU
  /// \param parts of the layers, in order; empty: the CPU computes all layers
  /// \throws std::bad_alloc if memory is short
  /// \throws no_thread if a thread cannot start
  /// \throws std::runtime_error if a part's GPU does not exist
  evaluator(const network<float>& whole, const data_set& data, std::int64_t most,
            std::int64_t batch, int threads, std::vector<evaluated_part> parts = {});
  ~evaluator();

  /// Bytes that an evaluator of this network takes: one number for each part, or one
  /// number without parts. The memory belongs to the part's processor. If another part
  /// is on a GPU, a part on the CPU takes memory that the GPU can access.
  static std::vector<std::int64_t> bytes(const network<float>& whole,
                                         std::int64_t batch, int threads,
                                         std::vector<evaluated_part> parts = {});

  /// Number of samples that each evaluation uses; 0 if none are held out, or the
  /// constructor's `most` is 0.
  std::int64_t samples() const { return samples_; }

  /// Returns the score of the parameters; absent if the evaluation was stopped. Waits
  /// for all forwards, and passes on exceptions of the data set.
  /// \pre samples() > 0
  /// \param parameters a bucket for each layer of the network, in any memory of this
  /// machine
  /// \param stopped may be null; once true, the evaluation ends before the next forward
  /// of all layers, without a score
  /// \throws std::runtime_error if a GPU fails
  std::optional<score> evaluate(const std::vector<const float*>& parameters,
                                const std::atomic<bool>* stopped = nullptr);

private:
  class part;

  loss_sum loss_of(std::int64_t samples);

  network<float> whole_;
  const data_set& data_;
  std::int64_t samples_;
  std::int64_t batch_;
  std::list<part> parts_; // no part where no samples are held out
  tensor_memory input_, labels_;
};

} // namespace troupe
