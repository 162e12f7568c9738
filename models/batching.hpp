// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// The division of a run's samples into batches and microbatches.

#include "models/uneven_microbatches.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace troupe {

/// Samples [first, first + count) of the training data. Sample 0 is the first that was
/// ever trained on, also in a resumed run.
struct sample_range {
  std::int64_t first;
  std::int64_t count;
};

/// The shape of one microbatch.
struct microbatch_shape {
  std::int64_t samples;
  std::int64_t length = 0; ///< Tokens of each sample; 0: the network's full length.

  bool operator==(const microbatch_shape&) const = default;
};

/// The division of a run's samples. Batch t covers samples t*batch up to (t+1)*batch,
/// counted after the samples of batches before the run. A batch's microbatches differ
/// by at most one sample, larger first, unless `uneven` gives sizes.
struct batching {
  std::int64_t batch;
  int microbatches;
  std::int64_t preceding_samples = 0; ///< Samples of batches before the run.
  /// Sizes and lengths of a batch's microbatches; null if all lengths are full and
  /// sizes differ by at most one sample.
  std::shared_ptr<const uneven_microbatches> uneven = nullptr;

  std::int64_t samples_of(std::int64_t microbatch) const {
    const auto k = microbatch % microbatches;
    if (has_sizes())
      return uneven->samples[static_cast<std::size_t>(k)];
    return batch / microbatches + (k < batch % microbatches ? 1 : 0);
  }

  /// Tokens of each sample of a microbatch, whose index counts over this run from 0. A
  /// length of 0 means the network's full length.
  std::int64_t length_of(std::int64_t microbatch) const {
    if (!uneven || uneven->lengths.empty())
      return 0;
    const auto k = static_cast<std::size_t>(microbatch % microbatches);
    return uneven->lengths[k % uneven->lengths.size()];
  }

  microbatch_shape shape_of(std::int64_t microbatch) const {
    return {samples_of(microbatch), length_of(microbatch)};
  }

  /// The distinct shapes of a batch's microbatches, in order of first occurrence.
  std::vector<microbatch_shape> shapes() const {
    std::vector<microbatch_shape> result;
    for (int k = 0; k < microbatches; ++k)
      if (const auto candidate = shape_of(k);
          std::ranges::find(result, candidate) == result.end())
        result.push_back(candidate);
    return result;
  }

  std::int64_t largest() const {
    return has_sizes() ? std::ranges::max(uneven->samples) : samples_of(0);
  }

  /// The index of a microbatch's first sample, counted over this run and the batches
  /// before.
  /// \param microbatch index over this run, from 0
  std::int64_t first_of(std::int64_t microbatch) const {
    const auto k = microbatch % microbatches, rest = batch % microbatches;
    auto in_batch = k * (batch / microbatches) + std::min(k, rest);
    if (has_sizes()) {
      in_batch = 0;
      for (std::int64_t i = 0; i < k; ++i)
        in_batch += samples_of(i);
    }
    return preceding_samples + microbatch / microbatches * batch + in_batch;
  }

  sample_range range_of(std::int64_t microbatch) const {
    return {first_of(microbatch), samples_of(microbatch)};
  }

  /// Tokens of a batch.
  /// \param longest tokens of each sample whose microbatch has the network's full
  /// length
  std::int64_t tokens(std::int64_t longest) const {
    std::int64_t result = 0;
    for (int k = 0; k < microbatches; ++k) {
      const auto [samples, length] = shape_of(k);
      result += samples * (length > 0 ? length : longest);
    }
    return result;
  }

private:
  bool has_sizes() const { return uneven && !uneven->samples.empty(); }
};

} // namespace troupe
