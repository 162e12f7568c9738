// SPDX-License-Identifier: BSD-3-Clause
// Products of bf16: the blocking of sgemm.cpp, with blocks of 32 x 32 (bf16_block.hpp)
// in place of tiles.

#include "kernels/bf16_gemm.hpp"

#include "kernels/bf16_pack.hpp"
#include "kernels/bf16_sums.hpp"
#include "kernels/widened_gemm.hpp"

#include <algorithm>
#include <memory>
#include <stdexcept>

namespace troupe {

namespace {

constexpr std::int64_t most_depth =
  512;                                  // 32 rows of a, packed, stay in the first cache
constexpr std::int64_t most_rows = 256; // of a, packed at once
constexpr std::int64_t columns_a_part = 256;
// A panel is the part of b that is packed at once, and stays in the second cache.
constexpr std::int64_t panel_values = 512 * 1024;
constexpr std::int64_t panel_columns = 1024;
constexpr std::int64_t panel_depth = panel_values / 128;

struct packing_space {
  alignas(64) std::uint16_t a[most_depth * most_rows];
  alignas(64) std::uint16_t b[panel_values];
  alignas(64) float sums[most_rows * panel_columns]; // for a c that is bf16
};

packing_space& space() {
  thread_local const auto mine = std::make_unique_for_overwrite<packing_space>();
  return *mine;
}

std::int64_t steps_of(std::int64_t depth) {
  return (depth + step_depth - 1) / step_depth;
}

std::int64_t whole_blocks(std::int64_t lines) {
  return (lines + block_side - 1) / block_side * block_side;
}

/// Packs lines of m, a (lines, depth) matrix as read, from `line` and from index
/// `begin` of the depth on, in whole blocks.
template <bool OfA, class Value>
void pack_values(matrix<const Value> m, std::int64_t line, std::int64_t lines,
                 std::int64_t begin, std::int64_t depth, std::uint16_t* to) {
  const auto steps = steps_of(depth);
  const bool by_depth = !m.transposed;
  const auto tile_at = [&](std::int64_t step, std::int64_t i) {
    const auto offset = step * step_depth;
    const tile_source<Value> s{
      by_depth ? m.data + (line + i) * m.stride + begin + offset
               : m.data + (begin + offset) * m.stride + line + i,
      m.stride, static_cast<int>(std::clamp<std::int64_t>(lines - i, 0, tile_side)),
      static_cast<int>(std::min<std::int64_t>(depth - offset, step_depth)), by_depth};
    pack_tile<OfA>(s, to + i / block_side * steps * step_values + step * step_values
                        + i % block_side / tile_side * tile_values);
  };
  const auto whole = whole_blocks(lines);
  if (by_depth) // memory is read faster along its rows
    for (std::int64_t i = 0; i < whole; i += tile_side)
      for (std::int64_t step = 0; step < steps; ++step)
        tile_at(step, i);
  else
    for (std::int64_t step = 0; step < steps; ++step)
      for (std::int64_t i = 0; i < whole; i += tile_side)
        tile_at(step, i);
}

template <bool OfA>
void pack(const stored_matrix<const float>& m, std::int64_t line, std::int64_t lines,
          std::int64_t begin, std::int64_t depth, std::uint16_t* to) {
  if (m.is_bf16)
    pack_values<OfA>(m.rounded(), line, lines, begin, depth, to);
  else
    pack_values<OfA>(m.plain(), line, lines, begin, depth, to);
}

/// Computes a partial block of c: only c.rows by c.columns values exist.
void make_part(bf16_block make, std::int64_t steps, const std::uint16_t* a,
               const std::uint16_t* b, bool from_zero, matrix<float> c) {
  alignas(64) float part[block_side * block_side] = {};
  for (std::int64_t r = 0; r < c.rows && !from_zero; ++r)
    std::copy_n(c.row(r), c.columns, part + r * block_side);
  make(steps, a, b, from_zero, part, block_side);
  for (std::int64_t r = 0; r < c.rows; ++r)
    std::copy_n(part + r * block_side, c.columns, c.row(r));
}

/// Computes all blocks of a part of c.
/// \param a_sliver,b_sliver values from the lines of one block to the lines of the next
void make_blocks(bf16_block make, std::int64_t steps, const std::uint16_t* a,
                 std::int64_t a_sliver, const std::uint16_t* b, std::int64_t b_sliver,
                 bool from_zero, matrix<float> c) {
  for (std::int64_t i = 0; i < c.rows; i += block_side)
    for (std::int64_t j = 0; j < c.columns; j += block_side) {
      const auto* const a_block = a + i / block_side * a_sliver;
      const auto* const b_block = b + j / block_side * b_sliver;
      const auto rows = std::min<std::int64_t>(block_side, c.rows - i),
                 columns = std::min<std::int64_t>(block_side, c.columns - j);
      if (rows == block_side && columns == block_side)
        make(steps, a_block, b_block, from_zero, c.row(i) + j, c.stride);
      else
        make_part(make, steps, a_block, b_block, from_zero,
                  c.row_range(i, rows).column_range(j, columns));
    }
}

} // namespace

void bf16_gemm(bf16_path path, stored_matrix<const float> a,
               stored_matrix<const float> b, float alpha, float beta,
               stored_matrix<float> c, const epilogue<float>& end) {
  if (path == bf16_path::widen)
    return widened_gemm(a, b, alpha, beta, c, end);
  check_factors(alpha, beta, c);
  const auto make = block_of(path);
  const tile_state tiles{path};
  const auto whole_depth = read_depth(a);
  auto& packed = space();
  const auto depth_at_once = std::min(panel_depth, whole_depth);
  const auto columns_at_once = std::min(
    panel_columns, panel_values / std::max<std::int64_t>(1, steps_of(depth_at_once))
                     / step_values * block_side);
  const bool once = depth_at_once == whole_depth; // whole columns of b fit
  for (std::int64_t column = 0; column < c.columns; column += columns_at_once) {
    const auto columns = std::min(columns_at_once, c.columns - column);
    if (once)
      pack<false>(b.t(), column, columns, 0, whole_depth, packed.b);
    for (std::int64_t row = 0; row < c.rows; row += most_rows) {
      const auto rows = std::min(most_rows, c.rows - row);
      const part_of_sums to{c, row, column, dense(space().sums, rows, columns)};
      if (beta != 0)
        scale(beta, to.sums());
      for (std::int64_t begin = 0; begin < whole_depth; begin += most_depth) {
        const auto depth = std::min(most_depth, whole_depth - begin),
                   steps = steps_of(depth);
        const auto in_panel = begin % depth_at_once;
        const auto panel = std::min(depth_at_once, whole_depth - (begin - in_panel));
        if (!once && in_panel == 0)
          pack<false>(b.t(), column, columns, begin, panel, packed.b);
        pack<true>(a, row, rows, begin, depth, packed.a);
        const auto sliver = steps_of(panel) * step_values;
        for (std::int64_t j = 0; j < columns; j += columns_a_part) {
          const auto count = std::min(columns_a_part, columns - j);
          make_blocks(
            make, steps, packed.a, steps * step_values,
            packed.b + j / block_side * sliver + in_panel / step_depth * step_values,
            sliver, begin == 0 && beta == 0, to.sums().column_range(j, count));
          if (begin + depth == whole_depth)
            to.end(j, count, alpha, end);
        }
      }
    }
  }
}

std::int64_t bf16_packed_size(std::int64_t depth, std::int64_t columns) {
  return steps_of(depth) * step_depth * whole_blocks(columns) / 2;
}

void bf16_pack_right(bf16_path path, stored_matrix<const float> b, std::int64_t first,
                     std::int64_t columns, float* to) {
  if (path == bf16_path::widen)
    return widened_pack_right(b, first, columns, to);
  const auto depth = b.transposed ? b.columns : b.rows;
  pack<false>(b.t(), first, columns, 0, depth,
              reinterpret_cast<std::uint16_t*>(to)
                + first / block_side * steps_of(depth) * step_values);
}

void bf16_gemm_packed(bf16_path path, stored_matrix<const float> a, const float* b,
                      std::int64_t depth, std::int64_t first, float alpha, float beta,
                      stored_matrix<float> c, const epilogue<float>& end) {
  if (path == bf16_path::widen)
    return widened_gemm_packed(a, b, depth, first, alpha, beta, c, end);
  check_factors(alpha, beta, c);
  const auto make = block_of(path);
  const tile_state tiles{path};
  const auto whole_depth = read_depth(a);
  const auto sliver = steps_of(depth) * step_values;
  const auto* const packed_b = reinterpret_cast<const std::uint16_t*>(b);
  auto* const packed_a = space().a;
  for (std::int64_t column = 0; column < c.columns; column += panel_columns)
    for (std::int64_t row = 0; row < c.rows; row += most_rows) {
      const part_of_sums to{c, row, column,
                            dense(space().sums, std::min(most_rows, c.rows - row),
                                  std::min(panel_columns, c.columns - column))};
      const auto sums = to.sums();
      if (beta != 0)
        scale(beta, sums);
      for (std::int64_t begin = 0; begin < whole_depth; begin += most_depth) {
        const auto block_depth = std::min(most_depth, whole_depth - begin),
                   steps = steps_of(block_depth);
        pack<true>(a, row, sums.rows, begin, block_depth, packed_a);
        for (std::int64_t j = 0; j < sums.columns; j += columns_a_part) {
          const auto count = std::min(columns_a_part, sums.columns - j);
          make_blocks(make, steps, packed_a, steps * step_values,
                      packed_b + (first + column + j) / block_side * sliver
                        + begin / step_depth * step_values,
                      sliver, begin == 0 && beta == 0, sums.column_range(j, count));
          if (begin + block_depth == whole_depth)
            to.end(j, count, alpha, end);
        }
      }
    }
}

} // namespace troupe
