#pragma once

#include "kernels/cross_entropy.hpp"
#include "models/data/data_set.hpp"
#include "models/forward_layers.hpp"

#include <algorithm>
#include <atomic>
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

/// Runs forwards of a whole network, cut nowhere, on held-out samples.
class evaluator {
public:
  /// \param data outlives it
  /// \param most samples at most; the first of those held out
  /// \param batch samples a forward at most
  evaluator(const network<float>& whole, const data_set& data, std::int64_t most,
            std::int64_t batch, int threads);

  /// Bytes that one for this network takes.
  static std::int64_t bytes(const network<float>& whole, std::int64_t batch,
                            int threads);

  /// Samples it will use; 0 if none are held out.
  std::int64_t samples() const { return samples_; }

  /// \param parameters a bucket a layer
  /// \param stopped once it is set, the evaluation ends before its next batch, and
  /// there is no score. May be null.
  std::optional<score> evaluate(const std::vector<const float*>& parameters,
                                const std::atomic<bool>* stopped = nullptr);

private:
  network<float> whole_;
  const data_set& data_;
  std::int64_t samples_;
  std::int64_t batch_;
  stream on_;
  memory_account account_;
  scored_layers layers_;
  tensor_memory input_, labels_;
};

} // namespace troupe
