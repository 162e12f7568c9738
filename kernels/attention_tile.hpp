// SPDX-License-Identifier: BSD-3-Clause
// The register tile of the fused attention: a small product of packed operands.
#pragma once

#include "kernels/vector.hpp"

#include <cstdint>

namespace troupe {

/// Number of rows of a tile. With two vectors per row, all sums and two vectors of b
/// fit the registers.
inline constexpr std::int64_t tile_rows = lanes == 16 ? 8 : 4;

/// The start value of a tile's sums: zero, the tile's values, or the tile's values
/// times a factor of each row.
enum class tile_begin { zero, sum, scaled };

/// c (tile_rows, Vectors * lanes) = a b + the start value. b: `depth` rows, 2 * lanes
/// values apart, the layout of sgemm; c: rows ToRow values apart. Element (row, k) of a
/// is at a[row * FromRow + k * step], so memory may hold a or its transpose.
/// \param factors one for each row; read only if the start value is scaled
template <int Vectors, int FromRow, int ToRow, tile_begin Begin>
void make_tile(std::int64_t depth, const float* a, std::int64_t step, const float* b,
               float* c, const float* factors = nullptr) {
  vector sums[tile_rows][Vectors];
#pragma GCC unroll 8
  for (int r = 0; r < tile_rows; ++r)
#pragma GCC unroll 2
    for (int v = 0; v < Vectors; ++v) {
      const auto* const from = c + r * ToRow + v * lanes;
      if constexpr (Begin == tile_begin::zero)
        sums[r][v] = vector{};
      else if constexpr (Begin == tile_begin::sum)
        sums[r][v] = load(from);
      else
        sums[r][v] = factors[r] * load(from);
    }
  for (std::int64_t k = 0; k < depth; ++k) {
    vector b_values[Vectors];
#pragma GCC unroll 2
    for (int v = 0; v < Vectors; ++v)
      b_values[v] = load(b + v * lanes);
#pragma GCC unroll 8
    for (int r = 0; r < tile_rows; ++r)
#pragma GCC unroll 2
      for (int v = 0; v < Vectors; ++v)
        sums[r][v] += a[r * FromRow] * b_values[v];
    a += step;
    b += 2 * lanes;
  }
#pragma GCC unroll 8
  for (int r = 0; r < tile_rows; ++r)
#pragma GCC unroll 2
    for (int v = 0; v < Vectors; ++v)
      store(c + r * ToRow + v * lanes, sums[r][v]);
}

} // namespace troupe
