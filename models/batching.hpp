#pragma once

#include <cstdint>

namespace troupe {

/// Samples [first, first + count), counted from the first that was ever trained on.
struct sample_range {
  std::int64_t first;
  std::int64_t count;
};

/// How a run's samples make batches and microbatches: batch t is samples t*batch up to
/// (t+1)*batch, behind those of batches before the run; its microbatches differ by one
/// sample at most, larger first.
struct batching {
  std::int64_t batch;
  int microbatches;
  std::int64_t before = 0; ///< Samples of batches before the run.

  std::int64_t samples_of(std::int64_t microbatch) const {
    const auto k = microbatch % microbatches;
    return batch / microbatches + (k < batch % microbatches ? 1 : 0);
  }

  std::int64_t largest() const { return samples_of(0); }

  /// The first sample of a microbatch, counted with those before the run.
  std::int64_t first_of(std::int64_t microbatch) const {
    const auto k = microbatch % microbatches, rest = batch % microbatches;
    return before + microbatch / microbatches * batch + k * (batch / microbatches)
           + (k < rest ? k : rest);
  }

  sample_range range_of(std::int64_t microbatch) const {
    return {first_of(microbatch), samples_of(microbatch)};
  }
};

} // namespace troupe
