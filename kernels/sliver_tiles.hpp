// SPDX-License-Identifier: BSD-3-Clause
// A product in the manner of Goto & van de Geijn, "Anatomy of High-Performance Matrix
// Multiplication", 2008. Blocks of a and b are packed into slivers, in the order of the
// kernel's reads. A tile of c is summed up in registers. Meanwhile a sliver of a stays
// in the first cache, and slivers of b stream past.
//
//              columns_a_tile
//              ┌──┬──┬──┐                     c is made in tiles of rows_a_tile by
//        depth │  │  │  │ b, packed           columns_a_tile; each is a sum over
//              └──┴──┴──┘                     `depth` products, added to c block
//      ┌─────┐ ┌──┬──┬──┐ rows_a_tile         after block of the depth
//      │  a  │ │  │  │  │
//      └─────┘ └──┴──┴──┘
//       depth      c
#pragma once

#include "kernels/matrix.hpp"
#include "kernels/vector.hpp"

namespace troupe {

inline constexpr int rows_a_tile =
  lanes == 16 ? 14 : 6; // with two vectors a row, sums fill the registers
inline constexpr int columns_a_tile = 2 * lanes;
inline constexpr std::int64_t most_packed_depth = 512;
inline constexpr std::int64_t most_packed_rows = 8 * rows_a_tile; // of a block of a
inline constexpr std::int64_t most_packed_columns = 1024;         // of a block of b
inline constexpr std::int64_t most_part_columns = 256;

/// Memory for the packed blocks of a product.
struct packed_blocks {
  alignas(64) float a[most_packed_depth * most_packed_rows + lanes];
  alignas(64) float b[most_packed_depth * most_packed_columns];
};

/// The packed blocks of the calling thread, allocated at the first call and valid until
/// the thread ends.
packed_blocks& packing_buffers();

/// Cuts a depth into blocks, none deeper than most_packed_depth.
struct depth_blocks {
  explicit depth_blocks(std::int64_t whole)
    : depth(whole), count((whole + most_packed_depth - 1) / most_packed_depth) {
    // nop
  }

  std::int64_t first(std::int64_t block) const { return depth * block / count; }
  std::int64_t size(std::int64_t block) const {
    return first(block + 1) - first(block);
  }

  std::int64_t depth, count;
};

/// Computes c = alpha a b + beta c, tile by tile, for a block of c. Each sum begins at
/// 0 and runs along the depth.
/// \param a,b packed slivers
/// \param from_sliver number of values from one sliver of b to the next
void make_tiles(std::int64_t depth, const float* a, const float* b,
                std::int64_t from_sliver, float alpha, float beta, matrix<float> c);

} // namespace troupe
