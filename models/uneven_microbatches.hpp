// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <vector>

namespace troupe {

/// Microbatches of a batch that are not alike. A batch's are those of all data
/// replicas, in order.
struct uneven_microbatches {
  std::vector<std::int64_t> samples; ///< Of each; empty: they differ by one at most.
  /// Tokens of the samples of each microbatch, by turns: of a sample its first ones.
  /// Empty: all.
  std::vector<std::int64_t> lengths;
};

} // namespace troupe
