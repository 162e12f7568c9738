// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "kernels/attention_panels.hpp"
#include "kernels/attention_tile.hpp"
#include "kernels/vector_math.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

// Scores of a block of keys and a panel of queries. Queries are side by side, so that
// the softmax works on whole vectors. `ahead`: the index of the first query minus the
// index of the first key.

namespace troupe {

inline float scale_of_scores(std::int64_t size) {
  return 1 / std::sqrt(static_cast<float>(size));
}

/// e^x for x up to 88; 0 below -87.7. Like fast_exp, in fewer instructions. A source
/// that includes this function must not be compiled with reordered sums.
inline float score_exp(float x) {
  constexpr float rounder =
    12582912.0F + 127; // 1.5 2^23: sums with this number are whole numbers
  const float from = x < -88.0F ? -88.0F : x;
  const float sum = std::fma(from, 1.44269504F, rounder);
  const float n = sum - rounder;
  return exp_of_rest(from, n)
         * std::bit_cast<float>(std::bit_cast<std::uint32_t>(sum) << 23);
}

/// scores (keys, panel), rows ToRow apart, of the first `count` keys and the panel at
/// `queries`. Scores stay unset where all keys of a tile are later than all queries of
/// a vector.
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

/// Causal mask: sets the scores of keys that are later than a query.
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
