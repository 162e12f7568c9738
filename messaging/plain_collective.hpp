// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "messaging/collective_order.hpp"

#include <span>
#include <vector>

namespace troupe {

/// What a collective leaves in a rank's array, where its operation says anything: what
/// stands elsewhere in an array that it worked in has no meaning.
struct collective_outcome {
  std::int64_t begin = 0; ///< Where the values stand.
  std::vector<float> values;
};

/// The outcome of a collective on every rank, to the bit, by plain loops: what whoever
/// runs it is compared with.
/// \param arrays one a rank
/// \param where how each is cut
std::vector<collective_outcome> plain_collective(const collective_order& order,
                                                 std::span<const float* const> arrays,
                                                 const chunks& where, int root = 0);

} // namespace troupe
