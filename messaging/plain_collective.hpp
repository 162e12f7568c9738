// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "messaging/collective_order.hpp"

#include <span>
#include <vector>

// Collectives as plain loops: the reference for every other implementation.

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
/// \param where the chunks of each array. Operations on chunks, and sums of "ring",
/// need one chunk per rank
/// \pre `arrays` is not empty
/// \throws std::logic_error if the operation sums, and sum_in_order() does not know the
/// order's name
std::vector<collective_outcome> plain_collective(const collective_order& order,
                                                 std::span<const float* const> arrays,
                                                 const chunks& where, int root = 0);

} // namespace troupe
