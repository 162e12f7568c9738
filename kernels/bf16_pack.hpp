// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "kernels/bf16.hpp"

#include <cstdint>

namespace troupe {

/// The values of a tile before they are packed, fp32 or bf16: `lines` rows of a
/// (columns of b), and `depth` places of each. All others of the tile are 0.
template <class Value>
struct tile_source {
  const Value* from;
  std::int64_t stride; ///< From a line to the next; not by depth, from place to place.
  int lines;
  int depth;
  bool by_depth; ///< Places of a line stand side by side in memory; else lines do.

  /// The bits of a bf16.
  std::uint16_t at(int line, int place) const {
    if (line >= lines || place >= depth)
      return 0;
    const auto& value =
      by_depth ? from[line * stride + place] : from[place * stride + line];
    if constexpr (requires { value.bits; })
      return value.bits;
    else
      return bf16_of(value);
  }
};

/// Puts a tile into the order of bf16_block.hpp, rounded: of a, or else of b.
template <bool OfA, class Value>
void pack_tile(const tile_source<Value>& s, std::uint16_t* to);

/// The same by any processor.
template <bool OfA, class Value>
void pack_tile_plainly(const tile_source<Value>& s, std::uint16_t* to);

} // namespace troupe
