// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/sgemm.hpp"

#include "kernels/packed_product.hpp"
#include "kernels/sliver_pack.hpp"

#include <algorithm>

namespace troupe {

namespace {

void pack_left(matrix<const float> a, std::int64_t row, std::int64_t rows,
               std::int64_t first, std::int64_t depth, float* to) {
  pack_slivers<rows_a_tile, exact_values>(a.t(), row, rows, first, depth, to);
}

void pack_columns_of(matrix<const float> b, std::int64_t column, std::int64_t columns,
                     std::int64_t first, std::int64_t depth, float* to) {
  pack_slivers<columns_a_tile, exact_values>(b, column, columns, first, depth, to);
}

} // namespace

void sgemm(matrix<const float> a, matrix<const float> b, float alpha, float beta,
           matrix<float> c, const epilogue<float>& end) {
  multiply_packed(
    a.transposed ? a.rows : a.columns, [&](auto... where) { pack_left(a, where...); },
    [&](auto... where) { pack_columns_of(b, where...); }, alpha, beta, c, end);
}

std::int64_t packed_size(std::int64_t depth, std::int64_t columns) {
  return depth * ((columns + columns_a_tile - 1) / columns_a_tile * columns_a_tile);
}

void pack_right(matrix<const float> b, float* to) {
  pack_columns_of(b, 0, b.transposed ? b.rows : b.columns, 0,
                  b.transposed ? b.columns : b.rows, to);
}

void sgemm_packed(matrix<const float> a, const float* b, std::int64_t depth,
                  float alpha, float beta, matrix<float> c) {
  const depth_blocks blocks{a.transposed ? a.rows : a.columns};
  auto* const left = packing_buffers().a;
  for (std::int64_t row = 0; row < c.rows; row += most_packed_rows) {
    const auto rows = std::min(most_packed_rows, c.rows - row);
    for (std::int64_t block = 0; block < blocks.count; ++block) {
      const auto first = blocks.first(block);
      pack_left(a, row, rows, first, blocks.size(block), left);
      make_tiles(blocks.size(block), left, b + first * columns_a_tile,
                 depth * columns_a_tile, alpha, block == 0 ? beta : 1.0F,
                 c.row_range(row, rows));
    }
  }
}

} // namespace troupe
