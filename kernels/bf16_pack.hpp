// SPDX-License-Identifier: BSD-3-Clause
// Packs tiles of 16 lines for products of bf16, in the layout of bf16_block.hpp.
#pragma once

#include "kernels/bf16.hpp"

#include <cstdint>

namespace troupe {

/// The values of a tile before packing, fp32 or bf16: `lines` rows of a (or columns of
/// b), and `depth` values of each line. All other values of the tile are 0.
template <class Value>
struct tile_source {
  const Value* from;
  /// Values from one line to the next if `by_depth`; else from one index of the depth
  /// to the next.
  std::int64_t stride;
  int lines;
  int depth;
  bool by_depth; ///< True if the values of one line are adjacent in memory; else values
                 ///< of neighbouring lines are adjacent.

  /// The bits of value `index` of a line, rounded to bf16.
  std::uint16_t at(int line, int index) const {
    if (line >= lines || index >= depth)
      return 0;
    const auto& value =
      by_depth ? from[line * stride + index] : from[index * stride + line];
    if constexpr (requires { value.bits; })
      return value.bits;
    else
      return bf16_of(value);
  }
};

/// Packs a tile, of a if OfA and else of b, in the order of bf16_block.hpp, rounded to
/// bf16.
template <bool OfA, class Value>
void pack_tile(const tile_source<Value>& s, std::uint16_t* to);

/// Packs a tile to the bits of pack_tile(), without instructions for bf16.
template <bool OfA, class Value>
void pack_tile_plainly(const tile_source<Value>& s, std::uint16_t* to);

} // namespace troupe
