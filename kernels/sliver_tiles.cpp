// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/sliver_tiles.hpp"

#include <algorithm>
#include <array>
#include <memory>
#include <utility>

namespace troupe {

namespace {

/// Computes a tile of c of `Rows` rows: c = alpha a b + beta c.
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
    const vector b_left = load(b), b_right = load(b + lanes);
#pragma GCC unroll 14
    for (int r = 0; r < Rows; ++r) {
      sums[r][0] += a[r] * b_left;
      sums[r][1] += a[r] * b_right;
    }
    a += rows_a_tile;
    b += columns_a_tile;
  }
  // Unrolled throughout, because the compiler keeps arrays with run-time indices in
  // memory.
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

/// The instances of make_tile, by number of rows - 1.
constexpr auto tiles = tiles_of(std::make_integer_sequence<int, rows_a_tile>{});

int at_most(int size, std::int64_t left) {
  return static_cast<int>(std::min<std::int64_t>(size, left));
}

} // namespace

packed_blocks& packing_buffers() {
  thread_local const auto blocks = std::make_unique<packed_blocks>();
  return *blocks;
}

void make_tiles(std::int64_t depth, const float* a, const float* b,
                std::int64_t from_sliver, float alpha, float beta, matrix<float> c) {
  for (std::int64_t i = 0; i < c.rows; i += rows_a_tile)
    for (std::int64_t j = 0; j < c.columns; j += columns_a_tile)
      tiles[static_cast<std::size_t>(at_most(rows_a_tile, c.rows - i) - 1)](
        depth, a + i * depth, b + j / columns_a_tile * from_sliver, alpha, beta,
        c.row(i) + j, c.stride, at_most(columns_a_tile, c.columns - j));
}

} // namespace troupe
