// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/widened_gemm.hpp"

#include "kernels/bf16_sums.hpp"
#include "kernels/packed_product.hpp"
#include "kernels/sliver_pack.hpp"

#include <algorithm>
#include <memory>

namespace troupe {

namespace {

/// Rows whose size in bytes is a power of two would share few lines of the first cache.
constexpr std::int64_t sums_stride = most_packed_columns + lanes;

/// The calling thread's buffer for the sums of a c that is bf16, allocated at the first
/// call.
float* sums_buffer() {
  struct storage {
    alignas(64) float sums[most_packed_rows * sums_stride];
  };
  thread_local const auto mine = std::make_unique_for_overwrite<storage>();
  return mine->sums;
}

template <int Width, class Out>
void pack(const stored_matrix<const float>& m, std::int64_t line, std::int64_t lines,
          std::int64_t first, std::int64_t depth, Out* to) {
  if (m.is_bf16)
    pack_slivers<Width, widened_values>(m.rounded(), line, lines, first, depth, to);
  else
    pack_slivers<Width, rounded_values>(m.plain(), line, lines, first, depth, to);
}

std::int64_t whole_tiles(std::int64_t columns) {
  return (columns + columns_a_tile - 1) / columns_a_tile * columns_a_tile;
}

/// A product whose sums are computed a few rows at a time over the whole depth, because
/// c cannot hold sums before scaling and rounding.
template <class PackLeft, class PackRight>
void multiply_by_rows(std::int64_t whole_depth, const PackLeft& pack_left,
                      const PackRight& pack_right, float alpha, float beta,
                      const stored_matrix<float>& c, const epilogue<float>& end) {
  const depth_blocks blocks{whole_depth};
  auto& packed = packing_buffers();
  const auto fitting = most_packed_depth * most_packed_columns
                       / std::max<std::int64_t>(1, whole_depth) / columns_a_tile
                       * columns_a_tile; // columns of the whole depth
  const bool once = fitting > 0;
  const auto columns_at_once =
    once ? std::min(fitting, most_packed_columns) : most_packed_columns;
  for (std::int64_t column = 0; column < c.columns; column += columns_at_once) {
    const auto columns = std::min(columns_at_once, c.columns - column);
    const auto right_at = [&](std::int64_t block) {
      return packed.b + (once ? blocks.first(block) * whole_tiles(columns) : 0);
    };
    const auto pack_block = [&](std::int64_t block) {
      pack_right(column, columns, blocks.first(block), blocks.size(block),
                 right_at(block));
    };
    for (std::int64_t block = 0; once && block < blocks.count; ++block)
      pack_block(block);
    for (std::int64_t row = 0; row < c.rows; row += most_packed_rows) {
      const auto rows = std::min(most_packed_rows, c.rows - row);
      const part_of_sums to{
        c, row, column, {sums_buffer(), rows, columns, sums_stride}};
      if (beta != 0)
        scale(beta, to.sums());
      for (std::int64_t block = 0; block < blocks.count; ++block) {
        const auto depth = blocks.size(block);
        if (!once)
          pack_block(block);
        pack_left(row, rows, blocks.first(block), depth, packed.a);
        for (std::int64_t j = 0; j < columns; j += most_part_columns) {
          const auto count = std::min(most_part_columns, columns - j);
          make_tiles(depth, packed.a, right_at(block) + j * depth,
                     depth * columns_a_tile, 1, block == 0 && beta == 0 ? 0.0F : 1.0F,
                     to.sums().column_range(j, count));
          if (block + 1 == blocks.count)
            to.end(j, count, alpha, end);
        }
      }
    }
  }
}

template <class PackRight>
void multiply(const stored_matrix<const float>& a, const PackRight& pack_right,
              float alpha, float beta, const stored_matrix<float>& c,
              const epilogue<float>& end) {
  check_factors(alpha, beta, c);
  const auto pack_left = [&](auto... where) { pack<rows_a_tile>(a.t(), where...); };
  if (!c.is_bf16 && alpha == 1 && (beta == 0 || beta == 1))
    multiply_packed(read_depth(a), pack_left, pack_right, 1, beta, c.plain(), end);
  else
    multiply_by_rows(read_depth(a), pack_left, pack_right, alpha, beta, c, end);
}

} // namespace

void widened_gemm(stored_matrix<const float> a, stored_matrix<const float> b,
                  float alpha, float beta, stored_matrix<float> c,
                  const epilogue<float>& end) {
  multiply(
    a, [&](auto... where) { pack<columns_a_tile>(b, where...); }, alpha, beta, c, end);
}

// Packs slivers of bf16, each of the whole depth.
void widened_pack_right(stored_matrix<const float> b, std::int64_t first,
                        std::int64_t columns, float* to) {
  const auto depth = b.transposed ? b.columns : b.rows;
  pack<columns_a_tile>(b, first, columns, 0, depth,
                       reinterpret_cast<bf16*>(to) + first * depth);
}

void widened_gemm_packed(stored_matrix<const float> a, const float* b,
                         std::int64_t depth, std::int64_t first, float alpha,
                         float beta, stored_matrix<float> c,
                         const epilogue<float>& end) {
  const auto* const slivers = reinterpret_cast<const bf16*>(b) + first * depth;
  const auto widen = [&](std::int64_t column, std::int64_t columns, std::int64_t begin,
                         std::int64_t count, float* to) {
    for (std::int64_t i = 0; i < columns; i += columns_a_tile)
      widen_row(slivers + (column + i) * depth + begin * columns_a_tile,
                count * columns_a_tile, to + i * count);
  };
  multiply(a, widen, alpha, beta, c, end);
}

} // namespace troupe
