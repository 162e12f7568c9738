// SPDX-License-Identifier: BSD-3-Clause
#pragma once

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

/// How good a network is on samples it has not seen.
struct score {
  double loss = 0;                ///< Mean over predictions, in nats.
  std::optional<double> accuracy; ///< Of classifiers: the part that is right.
};

/// Samples that evaluations beside a training take at once. \param batch of the
/// training
inline std::int64_t evaluation_batch(std::int64_t batch) {
  return std::clamp<std::int64_t>(batch, 1, 64);
}

/// Samples of one forward of an evaluation: enough rows of activations for fast
/// products, and no more than a batch has.
std::int64_t samples_a_forward(const network<float>& whole, std::int64_t batch);

/// Contiguous layers of a network that evaluate samples. The last ones end in the loss.
class scored_layers {
public:
  /// Layers [first, last) of `whole`. \param samples of a forward, at most
  /// \param threads of the streams \param account outlives it
  scored_layers(const network<float>& whole, int first, int last, std::int64_t samples,
                int threads, memory_account& account);

  /// Bytes that these take, their parameters not among them.
  static std::int64_t bytes(const network<float>& whole, int first, int last,
                            std::int64_t samples, int threads);

  bool is_last() const { return last_; }
  const layer_list<float>& layers() const { return layers_; }

  /// \param in samples, tokens or x, on; and y, but of the last layers
  /// \param labels for the last layers \param parameters a bucket a layer
  /// \param loss what the last layers say, summed over predictions
  void forward(const frame<float>& in, const std::int32_t* labels,
               std::span<const float* const> parameters, loss_sum& loss) const;

private:
  layer_list<float> layers_;
  bool last_;
  std::int64_t rows_, classes_;
  forward_room room_;
  tensor_memory logits_, row_losses_;
};

/// The mean of what all samples say. \param sum over predictions of so many samples
score score_of(const network<float>& whole, const loss_sum& sum, std::int64_t samples);

/// Layers of an evaluation that one processor computes: those behind the part before.
struct evaluated_part {
  int end;         ///< Behind its last layer, in the network.
  processor where; ///< On which its forwards run.

  bool operator==(const evaluated_part&) const = default;
};

/// Runs forwards of a whole network on held-out samples, one part of its layers after
/// another.
class evaluator {
public:
  /// \param data outlives it
  /// \param most samples at most; the first of those held out
  /// \param batch samples a forward at most
  /// \param threads of the CPU
  /// \param parts of the layers, in order; empty: the CPU computes all
  /// \throws std::bad_alloc, no_thread; std::runtime_error if there is no such GPU
  evaluator(const network<float>& whole, const data_set& data, std::int64_t most,
            std::int64_t batch, int threads, std::vector<evaluated_part> parts = {});
  ~evaluator();

  /// Bytes that each part of one for this network takes, on its processor.
  static std::vector<std::int64_t> bytes(const network<float>& whole,
                                         std::int64_t batch, int threads,
                                         std::vector<evaluated_part> parts = {});

  /// Samples it will use; 0 if none are held out.
  std::int64_t samples() const { return samples_; }

  /// \param parameters a bucket a layer, in any memory of this machine
  /// \param stopped once it is set, the evaluation ends before its next batch, and
  /// there is no score. May be null.
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
  std::list<part> parts_; // none where there are no samples
  tensor_memory input_, labels_;
};

} // namespace troupe
