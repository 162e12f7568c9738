// The blocking of sgemm.cpp, with blocks of 32 x 32 (bf16_block.hpp) in place of tiles.

#include "kernels/bf16_gemm.hpp"

#include "kernels/bf16_block.hpp"
#include "kernels/bf16_pack.hpp"

#include <algorithm>
#include <memory>
#include <stdexcept>

namespace troupe {

namespace {

constexpr std::int64_t most_depth =
  512;                                  // 32 rows of a, packed, stay in the first cache
constexpr std::int64_t most_rows = 256; // of a, packed at once
constexpr std::int64_t most_columns = 1024; // of b, packed at once
constexpr std::int64_t columns_a_part = 256;

struct packing_space {
  alignas(64) std::uint16_t a[most_depth * most_rows];
  alignas(64) std::uint16_t b[most_depth * most_columns];
};

packing_space& space() {
  thread_local const auto mine = std::make_unique<packing_space>();
  return *mine;
}

std::int64_t steps_of(std::int64_t depth) {
  return (depth + step_depth - 1) / step_depth;
}

std::int64_t whole_blocks(std::int64_t lines) {
  return (lines + block_side - 1) / block_side * block_side;
}

/// Packs lines of m, a (lines, depth) matrix as read, that begin at `line` and at place
/// `begin`, whole blocks of them.
template <bool OfA>
void pack(matrix<const float> m, std::int64_t line, std::int64_t lines,
          std::int64_t begin, std::int64_t depth, std::uint16_t* to) {
  const auto steps = steps_of(depth);
  const bool by_depth = !m.transposed;
  const auto tile_at = [&](std::int64_t step, std::int64_t i) {
    const auto place = step * step_depth;
    const tile_source s{
      by_depth ? m.data + (line + i) * m.stride + begin + place
               : m.data + (begin + place) * m.stride + line + i,
      m.stride, static_cast<int>(std::clamp<std::int64_t>(lines - i, 0, tile_side)),
      static_cast<int>(std::min<std::int64_t>(depth - place, step_depth)), by_depth};
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

/// A block of c of which only a part is there.
void make_part(bf16_block make, std::int64_t steps, const std::uint16_t* a,
               const std::uint16_t* b, bool from_zero, matrix<float> c) {
  alignas(64) float part[block_side * block_side] = {};
  for (std::int64_t r = 0; r < c.rows && !from_zero; ++r)
    std::copy_n(c.row(r), c.columns, part + r * block_side);
  make(steps, a, b, from_zero, part, block_side);
  for (std::int64_t r = 0; r < c.rows; ++r)
    std::copy_n(part + r * block_side, c.columns, c.row(r));
}

/// All blocks of a part of c. \param a_sliver,b_sliver values from one block's lines to
/// the next
void make_blocks(bf16_block make, std::int64_t steps, const std::uint16_t* a,
                 std::int64_t a_sliver, const std::uint16_t* b, std::int64_t b_sliver,
                 bool from_zero, matrix<float> c) {
  for (std::int64_t i = 0; i < c.rows; i += block_side)
    for (std::int64_t j = 0; j < c.columns; j += block_side) {
      const auto* const left = a + i / block_side * a_sliver;
      const auto* const right = b + j / block_side * b_sliver;
      const auto rows = std::min<std::int64_t>(block_side, c.rows - i),
                 columns = std::min<std::int64_t>(block_side, c.columns - j);
      if (rows == block_side && columns == block_side)
        make(steps, left, right, from_zero, c.row(i) + j, c.stride);
      else
        make_part(make, steps, left, right, from_zero,
                  c.row_range(i, rows).column_range(j, columns));
    }
}

void scale(float by, matrix<float> c) {
  if (by == 1)
    return;
  for (std::int64_t r = 0; r < c.rows; ++r)
    for (std::int64_t j = 0; j < c.columns; ++j)
      c.row(r)[j] *= by;
}

void check_factors(float alpha, float beta) {
  if (alpha != 1 && beta != 0)
    throw std::logic_error("a product of bf16 is scaled, or added to: not both");
}

} // namespace

void bf16_gemm(matrix<const float> a, matrix<const float> b, float alpha, float beta,
               matrix<float> c, const epilogue<float>& end) {
  check_factors(alpha, beta);
  const auto path = chosen_bf16_path().value();
  const auto make = block_of(path);
  const tile_state tiles{path};
  const auto whole_depth = a.transposed ? a.rows : a.columns;
  auto& packed = space();
  if (beta != 0)
    scale(beta, c);
  for (std::int64_t column = 0; column < c.columns; column += most_columns) {
    const auto columns = std::min(most_columns, c.columns - column);
    for (std::int64_t begin = 0; begin < whole_depth; begin += most_depth) {
      const auto depth = std::min(most_depth, whole_depth - begin),
                 steps = steps_of(depth), sliver = steps * step_values;
      const bool last = begin + depth == whole_depth;
      pack<false>(b.t(), column, columns, begin, depth, packed.b);
      for (std::int64_t row = 0; row < c.rows; row += most_rows) {
        const auto rows = std::min(most_rows, c.rows - row);
        pack<true>(a, row, rows, begin, depth, packed.a);
        for (std::int64_t j = 0; j < columns; j += columns_a_part) {
          const auto part = c.row_range(row, rows).column_range(
            column + j, std::min(columns_a_part, columns - j));
          make_blocks(make, steps, packed.a, sliver, packed.b + j / block_side * sliver,
                      sliver, begin == 0 && beta == 0, part);
          if (last)
            scale(alpha, part);
          if (last && end.what != epilogue_kind::none)
            end.finish(part, row, column + j);
        }
      }
    }
  }
}

std::int64_t bf16_packed_size(std::int64_t depth, std::int64_t columns) {
  return steps_of(depth) * step_depth * whole_blocks(columns) / 2;
}

void bf16_pack_right(matrix<const float> b, float* to) {
  pack<false>(b.t(), 0, b.transposed ? b.rows : b.columns, 0,
              b.transposed ? b.columns : b.rows, reinterpret_cast<std::uint16_t*>(to));
}

void bf16_gemm_packed(matrix<const float> a, const float* b, std::int64_t depth,
                      float alpha, float beta, matrix<float> c) {
  check_factors(alpha, beta);
  const auto path = chosen_bf16_path().value();
  const auto make = block_of(path);
  const tile_state tiles{path};
  const auto whole_depth = a.transposed ? a.rows : a.columns;
  const auto from_sliver = steps_of(depth) * step_values;
  const auto* const right = reinterpret_cast<const std::uint16_t*>(b);
  auto* const left = space().a;
  if (beta != 0)
    scale(beta, c);
  for (std::int64_t row = 0; row < c.rows; row += most_rows) {
    const auto part = c.row_range(row, std::min(most_rows, c.rows - row));
    for (std::int64_t begin = 0; begin < whole_depth; begin += most_depth) {
      const auto some = std::min(most_depth, whole_depth - begin);
      pack<true>(a, row, part.rows, begin, some, left);
      make_blocks(make, steps_of(some), left, steps_of(some) * step_values,
                  right + begin / step_depth * step_values, from_sliver,
                  begin == 0 && beta == 0, part);
    }
    scale(alpha, part);
  }
}

} // namespace troupe
