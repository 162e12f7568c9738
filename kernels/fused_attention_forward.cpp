// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/array_layout.hpp"
#include "kernels/attention_scores.hpp"
#include "kernels/bf16.hpp"
#include "kernels/fused_attention.hpp"

#include <limits>

namespace troupe {

namespace {

constexpr std::int64_t key_block = 2 * panel;
constexpr float nothing = -std::numeric_limits<float>::infinity();

struct forward_space {
  forward_space(std::int64_t length, std::int64_t size, float* begin = nullptr) {
    array_layout<float> layout{begin};
    keys = {layout.allocate(token_panels::packed_size(length, size)), size};
    values = {layout.allocate(value_panels::packed_size(length, size)), length, size};
    queries = {layout.allocate(token_panels::packed_size(panel, size)), size};
    scores = layout.allocate(key_block * panel);
    output = {layout.allocate(value_panels::packed_size(panel, size)), panel, size};
    end = layout.end();
  }

  token_panels keys;
  value_panels values;
  token_panels queries; // of one panel
  float* scores;        // (key_block, panel)
  value_panels output;  // y of one panel
  std::int64_t end;
};

/// The softmax of a panel of queries over the keys so far. Milakov & Gimelshein,
/// "Online normalizer calculation for softmax", 2018.
struct running_softmax {
  float most[panel];    ///< The largest score.
  float sums[panel];    ///< Sums of e^(scale (score - most)).
  float factors[panel]; ///< Factors of the sums before the last keys.

  running_softmax() {
    std::fill_n(most, panel, nothing);
    std::fill_n(sums, panel, 0.0F);
  }

  /// Turns the scores of more keys, an even number, into e^(scale (score - most)).
  /// \tparam Rounds for products of bf16: scores are rounded; sums add unrounded values
  template <bool Rounds>
  void add(float* scores, std::int64_t keys, float scale) {
    float largest[2][panel], now[panel], offset[panel], added[panel];
    for (auto& values : largest)
      std::copy_n(most, panel, values);
    for (std::int64_t k = 0; k < keys; k += 2)
      for (int row = 0; row < 2; ++row)
        for (std::int64_t q = 0; q < panel; ++q) {
          const float score = scores[(k + row) * panel + q];
          largest[row][q] = score > largest[row][q] ? score : largest[row][q];
        }
    for (std::int64_t q = 0; q < panel; ++q) {
      now[q] = std::max(largest[0][q], largest[1][q]);
      factors[q] = score_exp(scale * (most[q] - now[q]));
      most[q] = now[q];
      offset[q] = -scale * now[q];
      added[q] = 0;
    }
    for (std::int64_t k = 0; k < keys; ++k)
      for (std::int64_t q = 0; q < panel; ++q) {
        const float weight =
          score_exp(std::fma(scale, scores[k * panel + q], offset[q]));
        scores[k * panel + q] = Rounds ? rounded_to_bf16(weight) : weight;
        added[q] += weight;
      }
    for (std::int64_t q = 0; q < panel; ++q)
      sums[q] = factors[q] * sums[q] + added[q];
  }
};

/// output (queries, C/H) = factors output + weights times the values of `count` keys
/// from `key` on.
void add_values(const forward_space& buffers, std::int64_t key, std::int64_t count,
                std::int64_t ahead, std::int64_t queries, const float* factors,
                row_prefetcher& next) {
  for (std::int64_t c = 0; c < buffers.output.size; c += panel)
    for (std::int64_t q = 0; q < queries; q += tile_rows) {
      next.prefetch();
      const auto depth = std::min(count, ahead + q + tile_rows);
      const auto *const a = buffers.scores + q, *const b =
                                                  buffers.values.address(key, c);
      auto* const to = buffers.output.address(q, c);
      if (key == 0)
        make_tile<2, 1, panel, tile_begin::zero>(depth, a, panel, b, to);
      else
        make_tile<2, 1, panel, tile_begin::scaled>(depth, a, panel, b, to, factors + q);
    }
}

void write(const running_softmax& softmax, float scale, const value_panels& output,
           matrix<float> y, float* log_sum) {
  float factors[panel];
  for (std::int64_t q = 0; q < panel; ++q)
    factors[q] = 1 / softmax.sums[q];
  output.unpack(0, factors, y);
  for (std::int64_t q = 0; q < y.rows; ++q)
    log_sum[q] = scale * softmax.most[q] + std::log(softmax.sums[q]);
}

} // namespace

std::int64_t fused_attention::forward_scratch(std::int64_t length, std::int64_t size) {
  return forward_space{length, size}.end;
}

void fused_attention::forward(const head_matrices<const float>& in, matrix<float> y,
                              float* log_sum, float* space, precision score_precision) {
  const auto length = in.q.rows, size = in.q.columns;
  const float scale = scale_of_scores(size);
  const forward_space buffers{length, size, space};
  for (std::int64_t first = 0; first < length; first += panel) {
    const auto queries = std::min(panel, length - first), seen = first + queries;
    buffers.queries.pack(in.q.row_range(first, queries));
    buffers.keys.pack(in.k.row_range(first, queries), first);
    buffers.values.pack(in.v.row_range(first, queries), first);
    row_prefetcher next;
    next.add(y.row_range(first, queries));
    for (const auto& m : {in.q, in.k, in.v})
      next.add(m.row_range(seen, std::min(panel, length - seen)));
    running_softmax softmax;
    for (std::int64_t key = 0; key < seen; key += key_block) {
      const auto ahead = first - key;
      const auto count = round_up(tile_rows, std::min(key_block, seen - key));
      const token_panels keys{buffers.keys.address(key), size};
      make_scores<panel>(keys, buffers.queries.data, count, ahead, buffers.scores,
                         next);
      mask_later_keys<panel>(buffers.scores, count, ahead, nothing);
      if (score_precision == precision::bf16)
        softmax.add<true>(buffers.scores, count, scale);
      else
        softmax.add<false>(buffers.scores, count, scale);
      add_values(buffers, key, std::min(count, seen - key), ahead, queries,
                 softmax.factors, next);
    }
    write(softmax, scale, buffers.output, y.row_range(first, queries), log_sum + first);
  }
}

} // namespace troupe
