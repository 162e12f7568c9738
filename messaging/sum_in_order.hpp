// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "messaging/chunks.hpp"

#include <span>
#include <string_view>
#include <vector>

namespace troupe {

/// Sums arrays as an all_reduce of this name does ("naive", "tree", "ring", "halving",
/// "doubling"),
/// to the bit, in a plain loop that knows no messages: the specification of the orders.
/// A reduce sums as tree, counted from its root; a reduce_scatter as all_reduce.
/// \param where the ring's chunks: each has an order of its own. What else sums ignores
/// how the array is cut.
/// \throws std::logic_error if nothing sums by this name
std::vector<float> sum_in_order(std::string_view algorithm,
                                std::span<const float* const> arrays,
                                const chunks& where);

} // namespace troupe
