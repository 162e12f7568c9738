// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "messaging/collective_order.hpp"

#include <span>
#include <vector>

// Collectives as plain loops: the reference for every implementation that runs one.

namespace troupe {

/// The result of a collective in a rank's array. Empty if the operation defines no
/// result for the rank. Values of the array outside of the result have no meaning.
struct collective_outcome {
  std::int64_t begin = 0; ///< Index of the first value.
  std::vector<float> values;
};

/// Returns the result of a collective on every rank, to the bit, computed by plain
/// loops. Every implementation is compared with this result.
/// \param arrays one array per rank
/// \param where the chunks of each array
std::vector<collective_outcome> plain_collective(const collective_order& order,
                                                 std::span<const float* const> arrays,
                                                 const chunks& where, int root = 0);

} // namespace troupe
