// SPDX-License-Identifier: BSD-3-Clause
// The loops of a product over packed blocks, for a c that is fp32 and holds the sums.
#pragma once

#include "kernels/epilogue.hpp"
#include "kernels/sliver_tiles.hpp"

#include <algorithm>

namespace troupe {

/// c = the epilogue of alpha a b + beta c, on this thread. Uses the packing_buffers()
/// of the thread.
/// \param pack_left packs rows of a: (row, rows, first, depth, to), where `first` and
/// `depth` are the first index and the number of indices of the depth
/// \param pack_right packs columns of b: (column, columns, first, depth, to)
/// \pre `whole_depth` is at least 1, and c is not transposed
template <class PackLeft, class PackRight>
void multiply_packed(std::int64_t whole_depth, const PackLeft& pack_left,
                     const PackRight& pack_right, float alpha, float beta,
                     matrix<float> c, const epilogue<float>& end) {
  const depth_blocks blocks{whole_depth};
  auto& packed = packing_buffers();
  for (std::int64_t column = 0; column < c.columns; column += most_packed_columns) {
    const auto columns = std::min(most_packed_columns, c.columns - column);
    for (std::int64_t block = 0; block < blocks.count; ++block) {
      const auto first = blocks.first(block), depth = blocks.size(block);
      pack_right(column, columns, first, depth, packed.b);
      for (std::int64_t row = 0; row < c.rows; row += most_packed_rows) {
        const auto rows = std::min(most_packed_rows, c.rows - row);
        pack_left(row, rows, first, depth, packed.a);
        for (std::int64_t j = 0; j < columns; j += most_part_columns) {
          const auto part = c.row_range(row, rows).column_range(
            column + j, std::min(most_part_columns, columns - j));
          make_tiles(depth, packed.a, packed.b + j * depth, depth * columns_a_tile,
                     alpha, block == 0 ? beta : 1.0F, part);
          if (end.kind != epilogue_kind::none && block + 1 == blocks.count)
            end.finish(part, row, column + j);
        }
      }
    }
  }
}

} // namespace troupe
