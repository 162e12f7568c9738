// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <vector>

namespace troupe {

/// Microbatches of a batch with different sizes or lengths. A batch's microbatches are
/// the microbatches of all data replicas, in order.
struct uneven_microbatches {
  /// Samples of each microbatch; empty: sizes differ by at most one sample.
  std::vector<std::int64_t> samples;
  /// Tokens of the samples of each microbatch, used cyclically. Of a longer sample the
  /// first tokens are used. Empty: all tokens are used.
  std::vector<std::int64_t> lengths;
};

} // namespace troupe
