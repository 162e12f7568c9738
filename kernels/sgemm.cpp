// SPDX-License-Identifier: BSD-3-Clause
// A product in the manner of Goto & van de Geijn, "Anatomy of High-Performance Matrix
// Multiplication", 2008: blocks of a and b are packed into slivers, in the order in
// which they are read; a tile of c is summed up in registers while a sliver of a stays
// in the first cache and slivers of b stream past it.
//
//              columns_a_tile
//              ┌──┬──┬──┐                     c is made in tiles of rows_a_tile by
//        depth │  │  │  │ b, packed           columns_a_tile; each is a sum over
//              └──┴──┴──┘                     `depth` products, added to c block
//      ┌─────┐ ┌──┬──┬──┐ rows_a_tile         after block of the depth
//      │  a  │ │  │  │  │
//      └─────┘ └──┴──┴──┘
//       depth      c

#include "kernels/sgemm.hpp"

#include "kernels/vector.hpp"

#include <algorithm>
#include <array>
#include <memory>

namespace troupe {

namespace {

constexpr int rows_a_tile =
  lanes == 16 ? 14 : 6; // with two vectors a row, all registers
constexpr int columns_a_tile = 2 * lanes;
constexpr std::int64_t most_depth = 512;
constexpr std::int64_t most_rows = 8 * rows_a_tile; // of a, packed at once
constexpr std::int64_t most_columns = 1024;         // of b, packed at once
constexpr std::int64_t columns_a_part = 256;

struct packing_space {
  alignas(64) float a[most_depth * most_rows + lanes];
  alignas(64) float b[most_depth * most_columns];
};

packing_space& space() {
  thread_local const auto mine = std::make_unique<packing_space>();
  return *mine;
}

/// Copies `lines` lines of `length` values, `stride` apart, into columns of `to`, whose
/// rows are `width` long. May write up to a vector's length past the last row.
void pack_columns(const float* from, std::int64_t stride, int lines,
                  std::int64_t length, float* to, int width) {
  for (int first = 0; first < lines; first += lanes) {
    const int count = std::min(lanes, lines - first);
    std::int64_t i = 0;
    for (; i + lanes <= length; i += lanes) {
      vector block[lanes];
#pragma GCC unroll 16
      for (int line = 0; line < lanes; ++line)
        block[line] =
          line < count ? load(from + (first + line) * stride + i) : vector{};
      transpose(block);
#pragma GCC unroll 16
      for (int k = 0; k < lanes; ++k)
        store(to + (i + k) * width + first, block[k]);
    }
    for (; i < length; ++i)
      for (int line = 0; line < count; ++line)
        to[i * width + first + line] = from[(first + line) * stride + i];
  }
}

/// Packs lines of m, a (depth, lines) matrix as read: a transposed, or b. Each sliver
/// becomes `depth` rows of Width values, zeros in b where there are no more lines.
template <int Width>
void pack(matrix<const float> m, std::int64_t line, std::int64_t lines,
          std::int64_t first, std::int64_t depth, float* to) {
  const auto width_at = [&](std::int64_t i) {
    return static_cast<int>(std::min<std::int64_t>(Width, lines - i));
  };
  const auto whole = lines / Width * Width;
  if (Width == columns_a_tile && whole < lines)
    std::fill_n(to + whole * depth, depth * Width, 0.0F);
  if (m.transposed) {
    for (std::int64_t i = 0; i < lines; i += Width)
      pack_columns(m.data + (line + i) * m.stride + first, m.stride, width_at(i), depth,
                   to + i * depth, Width);
    return;
  }
  // A few rows of all slivers at a time, for memory is read faster along its rows.
  constexpr std::int64_t rows_at_once = 16;
  for (std::int64_t begin = 0; begin < depth; begin += rows_at_once)
    for (std::int64_t i = 0; i < lines; i += Width) {
      const auto* from = m.data + first * m.stride + line + i;
      const auto end = std::min(begin + rows_at_once, depth);
      auto* const sliver = to + i * depth;
      if (width_at(i) == Width)
        for (auto k = begin; k < end; ++k)
          std::memcpy(sliver + k * Width, from + k * m.stride, Width * sizeof(float));
      else
        for (auto k = begin; k < end; ++k)
          std::copy_n(from + k * m.stride, width_at(i), sliver + k * Width);
    }
}

/// A tile of c of `Rows` rows: c = alpha a b + beta c.
template <int Rows>
void make_tile(std::int64_t depth, const float* a, const float* b, float alpha,
               float beta, float* c, std::int64_t stride, int columns) {
  vector sums[Rows][2];
#pragma GCC unroll 14
  for (int r = 0; r < Rows; ++r) {
    sums[r][0] = sums[r][1] = vector{};
    __builtin_prefetch(c + r * stride, 1);
    __builtin_prefetch(c + r * stride + columns - 1, 1);
  }
  for (std::int64_t k = 0; k < depth; ++k) {
    __builtin_prefetch(b + 16 * columns_a_tile);
    __builtin_prefetch(b + 16 * columns_a_tile + lanes);
    const vector left = load(b), right = load(b + lanes);
#pragma GCC unroll 14
    for (int r = 0; r < Rows; ++r) {
      sums[r][0] += a[r] * left;
      sums[r][1] += a[r] * right;
    }
    a += rows_a_tile;
    b += columns_a_tile;
  }
  // Unrolled throughout, for what is indexed at run time is kept in memory.
  if (columns == columns_a_tile && beta == 0) {
#pragma GCC unroll 14
    for (int r = 0; r < Rows; ++r) {
      store(c + r * stride, alpha * sums[r][0]);
      store(c + r * stride + lanes, alpha * sums[r][1]);
    }
  } else if (columns == columns_a_tile) {
#pragma GCC unroll 14
    for (int r = 0; r < Rows; ++r) {
      auto* const to = c + r * stride;
      store(to, alpha * sums[r][0] + beta * load(to));
      store(to + lanes, alpha * sums[r][1] + beta * load(to + lanes));
    }
  } else {
    float part[Rows][columns_a_tile];
#pragma GCC unroll 14
    for (int r = 0; r < Rows; ++r) {
      store(part[r], alpha * sums[r][0]);
      store(part[r] + lanes, alpha * sums[r][1]);
    }
    for (int r = 0; r < Rows; ++r)
      for (int i = 0; i < columns; ++i) {
        auto& to = c[r * stride + i];
        to = beta == 0 ? part[r][i] : part[r][i] + beta * to;
      }
  }
}

using tile_call = void (*)(std::int64_t, const float*, const float*, float, float,
                           float*, std::int64_t, int);

template <int... Rows>
constexpr auto tiles_of(std::integer_sequence<int, Rows...>) {
  return std::array<tile_call, sizeof...(Rows)>{make_tile<Rows + 1>...};
}

/// make_tile by its number of rows - 1.
constexpr auto tiles = tiles_of(std::make_integer_sequence<int, rows_a_tile>{});

int at_most(int size, std::int64_t left) {
  return static_cast<int>(std::min<std::int64_t>(size, left));
}

/// All tiles of a part of c, from packed slivers of a and b. \param from_sliver values
/// from one sliver of b to the next
void make_tiles(std::int64_t depth, const float* a, const float* b,
                std::int64_t from_sliver, float alpha, float beta, matrix<float> c) {
  for (std::int64_t i = 0; i < c.rows; i += rows_a_tile)
    for (std::int64_t j = 0; j < c.columns; j += columns_a_tile)
      tiles[static_cast<std::size_t>(at_most(rows_a_tile, c.rows - i) - 1)](
        depth, a + i * depth, b + j / columns_a_tile * from_sliver, alpha, beta,
        c.row(i) + j, c.stride, at_most(columns_a_tile, c.columns - j));
}

/// The blocks that a depth is cut into: none deeper than the packing space.
struct depth_blocks {
  explicit depth_blocks(std::int64_t whole)
    : depth(whole), count((whole + most_depth - 1) / most_depth) {
    // nop
  }

  std::int64_t first(std::int64_t block) const { return depth * block / count; }
  std::int64_t size(std::int64_t block) const {
    return first(block + 1) - first(block);
  }

  std::int64_t depth, count;
};

} // namespace

void sgemm(matrix<const float> a, matrix<const float> b, float alpha, float beta,
           matrix<float> c, const epilogue<float>& end) {
  const depth_blocks blocks{a.transposed ? a.rows : a.columns};
  auto& packed = space();
  for (std::int64_t column = 0; column < c.columns; column += most_columns) {
    const auto columns = std::min(most_columns, c.columns - column);
    for (std::int64_t block = 0; block < blocks.count; ++block) {
      const auto first = blocks.first(block), depth = blocks.size(block);
      pack<columns_a_tile>(b, column, columns, first, depth, packed.b);
      for (std::int64_t row = 0; row < c.rows; row += most_rows) {
        const auto rows = std::min(most_rows, c.rows - row);
        pack<rows_a_tile>(a.t(), row, rows, first, depth, packed.a);
        for (std::int64_t j = 0; j < columns; j += columns_a_part) {
          const auto part = c.row_range(row, rows).column_range(
            column + j, std::min(columns_a_part, columns - j));
          make_tiles(depth, packed.a, packed.b + j * depth, depth * columns_a_tile,
                     alpha, block == 0 ? beta : 1.0F, part);
          if (end.what != epilogue_kind::none && block + 1 == blocks.count)
            end.finish(part, row, column + j);
        }
      }
    }
  }
}

std::int64_t packed_size(std::int64_t depth, std::int64_t columns) {
  return depth * ((columns + columns_a_tile - 1) / columns_a_tile * columns_a_tile);
}

void pack_right(matrix<const float> b, float* to) {
  pack<columns_a_tile>(b, 0, b.transposed ? b.rows : b.columns, 0,
                       b.transposed ? b.columns : b.rows, to);
}

void sgemm_packed(matrix<const float> a, const float* b, std::int64_t depth,
                  float alpha, float beta, matrix<float> c) {
  const depth_blocks blocks{a.transposed ? a.rows : a.columns};
  auto* const left = space().a;
  for (std::int64_t row = 0; row < c.rows; row += most_rows) {
    const auto rows = std::min(most_rows, c.rows - row);
    for (std::int64_t block = 0; block < blocks.count; ++block) {
      const auto first = blocks.first(block);
      pack<rows_a_tile>(a.t(), row, rows, first, blocks.size(block), left);
      make_tiles(blocks.size(block), left, b + first * columns_a_tile,
                 depth * columns_a_tile, alpha, block == 0 ? beta : 1.0F,
                 c.row_range(row, rows));
    }
  }
}

} // namespace troupe
