// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "messaging/chunks.hpp"
#include "messaging/codecs/codec.hpp"

#include <span>
#include <string_view>
#include <vector>

namespace troupe {

/// Sums arrays as the all_reduce with this name does ("naive", "tree", "ring",
/// "halving", "doubling"), to the bit. The plain loop without messages is the
/// specification of the orders. A reduce sums in the order of "tree", with ranks
/// counted from the root. A reduce_scatter sums as the all_reduce with the same name.
/// \param where the chunks of "ring", which sums each chunk in a different order; other
/// algorithms read only the number of values
/// \param coder a sum encodes and decodes both of its terms by this codec; null: sums
/// are of the terms as they are
/// \pre `arrays` is not empty, and for "ring" `where` has one chunk per array
/// \throws std::logic_error if no algorithm has this name
std::vector<float> sum_in_order(std::string_view algorithm,
                                std::span<const float* const> arrays,
                                const chunks& where, const codec* coder = nullptr);

} // namespace troupe
