// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <vector>

namespace troupe {

/// Microbatches of a batch with different sizes or lengths. A batch's microbatches are
/// the microbatches of all data replicas, in order.
struct uneven_microbatches {
  std::vector<std::int64_t> samples; ///< Of each; empty: sizes differ by at most one.
  /// Tokens of the samples of each microbatch, by turns; of a longer sample the first
  /// tokens are used. Empty: all tokens.
  std::vector<std::int64_t> lengths;
};

} // namespace troupe
