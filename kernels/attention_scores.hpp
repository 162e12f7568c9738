// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "kernels/attention_panels.hpp"
#include "kernels/attention_tile.hpp"
#include "kernels/vector_math.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

// Scores of a block of keys and a panel of queries, one row per key. The queries of a
// row are adjacent, so that the softmax works on whole vectors. `ahead` is the index of
// the first query minus the index of the first key.

namespace troupe {

inline float scale_of_scores(std::int64_t size) {
  return 1 / std::sqrt(static_cast<float>(size));
}

/// e^x for x up to 88; 0 below -87.7. Needs fewer instructions than fast_exp(). A
/// source that calls this function must not be compiled with options that reorder sums.
inline float score_exp(float x) {
  constexpr float rounder =
    12582912.0F + 127; // 1.5 2^23: sums with this number are whole numbers
  const float from = x < -88.0F ? -88.0F : x;
  const float sum = std::fma(from, 1.44269504F, rounder);
  const float n = sum - rounder;
  return exp_of_rest(from, n)
         * std::bit_cast<float>(std::bit_cast<std::uint32_t>(sum) << 23);
}

/// Computes the scores of the first `count` keys with the panel at `queries`, before
/// the factor scale_of_scores(). scores: (count, panel), rows ToRow values apart.
/// Scores stay unset where all keys of a tile are later than all queries of a vector.
/// Tiles are whole, so up to tile_rows - 1 rows after the last key may be written.
/// \param next prefetches rows before each tile
template <int ToRow>
void make_scores(const token_panels& keys, const float* queries, std::int64_t count,
                 std::int64_t ahead, float* scores, row_prefetcher& next) {
  const auto seen = std::min(count, ahead + panel);
  for (std::int64_t k = 0; k < seen; k += tile_rows) {
    next.prefetch();
    auto* const c = scores + k * ToRow;
    if (k < ahead + lanes)
      make_tile<2, 1, ToRow, tile_begin::zero>(keys.size, keys.address(k), panel,
                                               queries, c);
    else
      make_tile<1, 1, ToRow, tile_begin::zero>(keys.size, keys.address(k), panel,
                                               queries + lanes, c + lanes);
  }
}

/// Causal mask: sets the score of each query with each later key to `value`. Rows of
/// keys that are later than all queries stay unset.
template <int ToRow>
void mask_later_keys(float* scores, std::int64_t count, std::int64_t ahead,
                     float value) {
  const auto seen = std::min(count, ahead + panel);
  for (auto k = std::max<std::int64_t>(ahead + 1, 0); k < seen; ++k) {
    auto* const row = scores + k * ToRow;
    const auto hidden = static_cast<int>(k - ahead);
    for (int q = 0; q < static_cast<int>(panel); ++q)
      row[q] = q < hidden ? value : row[q];
  }
}

} // namespace troupe
