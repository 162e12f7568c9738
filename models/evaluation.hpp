#pragma once

#include "models/data/data_set.hpp"
#include "models/slice.hpp"

#include <algorithm>
#include <atomic>
#include <optional>
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

/// Runs forwards of a whole network, cut nowhere, on held-out samples.
class evaluator {
public:
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
  const data_set& data_;
  std::vector<slice<float>> layers_; ///< A slice each: nothing is stashed for long.
  bool classifies_;
  std::int64_t rows_;
  std::int64_t samples_;
  std::int64_t batch_;
  stream on_;
  memory_account account_;
  tensor_memory input_, labels_, stash_, scratch_;
  tensor_memory between_[2]; ///< Two layers' activations.
};

} // namespace troupe
