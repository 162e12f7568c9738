// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "messaging/chunks.hpp"

#include <span>
#include <string_view>
#include <vector>

namespace troupe {

/// Sums arrays as an all_reduce of this name does ("naive", "tree", "ring", "halving",
/// "doubling"), to the bit. The plain loop without messages is the specification of the
/// orders. A reduce sums as a tree does, counted from the root; a reduce_scatter sums
/// as all_reduce.
/// \param where the ring's chunks: each chunk is summed in a different order. Other
/// algorithms ignore the chunks.
/// \throws std::logic_error if no algorithm has this name
std::vector<float> sum_in_order(std::string_view algorithm,
                                std::span<const float* const> arrays,
                                const chunks& where);

} // namespace troupe
