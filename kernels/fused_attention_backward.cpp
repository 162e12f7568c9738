// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/array_layout.hpp"
#include "kernels/attention_scores.hpp"
#include "kernels/bf16.hpp"
#include "kernels/fused_attention.hpp"

namespace troupe {

namespace {

// Number of keys, and of queries, whose scores are computed together.
constexpr std::int64_t block = 2 * panel;

struct backward_space {
  backward_space(std::int64_t length, std::int64_t size, float* begin = nullptr) {
    array_layout<float> layout{begin};
    const auto tokens = [&](std::int64_t count) {
      return token_panels{layout.allocate(token_panels::packed_size(count, size)),
                          size};
    };
    const auto values = [&](std::int64_t count) {
      return value_panels{layout.allocate(value_panels::packed_size(count, size)),
                          count, size};
    };
    q = tokens(length);
    dy = tokens(length);
    q_values = values(length);
    dy_values = values(length);
    dq = values(round_up(tile_rows, length));
    k = tokens(block);
    v = tokens(block);
    k_values = values(block);
    dk = values(block);
    dv = values(block);
    p = layout.allocate(block * block);
    ds = layout.allocate(block * block);
    log_sum = layout.allocate(round_up(block, length));
    dots = layout.allocate(round_up(block, length));
    end = layout.end();
  }

  // For all queries; log_sum and dots (dy . y) are 0 after the last one.
  token_panels q, dy;
  value_panels q_values, dy_values, dq;
  float *log_sum, *dots;
  // For a block of keys.
  token_panels k, v;
  value_panels k_values, dk, dv;
  // For a block of keys and a block of queries: (keys, queries).
  float *p, *ds;
  std::int64_t end;
};

float dot(const float* x, const float* y, std::int64_t n) {
  float sums[16] = {};
  std::int64_t i = 0;
  for (; i + 16 <= n; i += 16)
    for (int lane = 0; lane < 16; ++lane)
      sums[lane] += x[i + lane] * y[i + lane];
  for (int lane = 0; i < n; ++i, ++lane)
    sums[lane] += x[i] * y[i];
  for (int half = 8; half > 0; half /= 2)
    for (int lane = 0; lane < half; ++lane)
      sums[lane] += sums[lane + half];
  return sums[0];
}

/// From scores and gradients of weights, for a panel of queries: p = e^(scale p -
/// log_sum) and ds = p (ds - dots) scale.
/// \tparam Rounds both to bf16
template <bool Rounds>
void score_gradient(float* p, float* ds, std::int64_t keys, const float* log_sum,
                    const float* dots, float scale) {
  float offset[panel], less[panel];
  for (std::int64_t q = 0; q < panel; ++q) {
    offset[q] = -log_sum[q];
    less[q] = -scale * dots[q];
  }
  for (std::int64_t k = 0; k < keys; ++k)
    for (std::int64_t q = 0; q < panel; ++q) {
      const auto index = k * block + q;
      const float weight = score_exp(std::fma(scale, p[index], offset[q]));
      const float gradient = weight * std::fma(scale, ds[index], less[q]);
      p[index] = Rounds ? rounded_to_bf16(weight) : weight;
      ds[index] = Rounds ? rounded_to_bf16(gradient) : gradient;
    }
}

/// A block of keys and a block of queries.
struct block_pair {
  std::int64_t key, keys;      ///< The first, and the number of keys.
  std::int64_t first, queries; ///< The first, and the number of queries.

  std::int64_t ahead() const { return first - key; }
};

void make_weights(const backward_space& buffers, const block_pair& pair, float scale,
                  precision score_precision, row_prefetcher& next) {
  const auto& gradient_of =
    score_precision == precision::bf16 ? score_gradient<true> : score_gradient<false>;
  for (std::int64_t q = 0; q < pair.queries; q += panel) {
    const auto query = pair.first + q, ahead = query - pair.key;
    auto *const p = buffers.p + q, *const ds = buffers.ds + q;
    make_scores<block>(buffers.k, buffers.q.address(query), pair.keys, ahead, p, next);
    make_scores<block>(buffers.v, buffers.dy.address(query), pair.keys, ahead, ds,
                       next);
    gradient_of(p, ds, std::min(pair.keys, ahead + panel), buffers.log_sum + query,
                buffers.dots + query, scale);
    for (auto* const array : {p, ds})
      mask_later_keys<block>(array, pair.keys, ahead, 0);
  }
}

/// sums (keys, C/H) += scores times the values of the queries. The first queries
/// initialise the sums.
void add_to_keys(const float* scores, const value_panels& values,
                 const block_pair& pair, const value_panels& sums,
                 row_prefetcher& next) {
  for (std::int64_t c = 0; c < sums.size; c += panel)
    for (std::int64_t k = 0; k < pair.keys; k += tile_rows) {
      next.prefetch();
      const auto from = std::max<std::int64_t>(k - pair.ahead(), 0);
      const auto depth = pair.queries - from;
      const auto* const a = scores + k * block + from;
      const auto* const b = values.address(pair.first + from, c);
      if (pair.ahead() == 0)
        make_tile<2, block, panel, tile_begin::zero>(depth, a, 1, b,
                                                     sums.address(k, c));
      else
        make_tile<2, block, panel, tile_begin::sum>(depth, a, 1, b, sums.address(k, c));
    }
}

/// dq += ds^T keys; the first keys initialise the sums.
void add_to_queries(const backward_space& buffers, const block_pair& pair) {
  for (std::int64_t c = 0; c < buffers.dq.size; c += panel)
    for (std::int64_t q = 0; q < pair.queries; q += tile_rows) {
      const auto depth = std::min(pair.keys, pair.ahead() + q + tile_rows);
      const auto *const a = buffers.ds + q, *const b = buffers.k_values.address(0, c);
      auto* const to = buffers.dq.address(pair.first + q, c);
      if (pair.key == 0)
        make_tile<2, 1, panel, tile_begin::zero>(depth, a, block, b, to);
      else
        make_tile<2, 1, panel, tile_begin::sum>(depth, a, block, b, to);
    }
}

/// The operands and results of one head's backward.
struct head_backward {
  const head_matrices<const float>& in;
  matrix<const float> y, dy;
  const head_matrices<float>& gradient;
  const backward_space& buffers;

  std::int64_t left(std::int64_t first) const {
    return std::min(block, y.rows - first);
  }

  void pack_queries(const block_pair& pair) const {
    const auto q = in.q.row_range(pair.first, pair.queries);
    const auto upper = dy.row_range(pair.first, pair.queries);
    buffers.q.pack(q, pair.first);
    buffers.q_values.pack(q, pair.first);
    buffers.dy.pack(upper, pair.first);
    buffers.dy_values.pack(upper, pair.first);
    for (auto r = pair.first; r < pair.first + pair.queries; ++r)
      buffers.dots[r] = dot(y.row(r), dy.row(r), y.columns);
  }

  void pack_keys(const block_pair& pair) const {
    const auto k = in.k.row_range(pair.key, pair.keys);
    buffers.k.pack(k);
    buffers.k_values.pack(k);
    buffers.v.pack(in.v.row_range(pair.key, pair.keys));
  }

  /// The rows that are read or written soon after the scores of this pair.
  row_prefetcher next_rows(const block_pair& pair) const {
    row_prefetcher next;
    const auto query = pair.first + pair.queries, key = pair.key + pair.keys;
    if (pair.key == 0)
      for (const auto& m : {in.q, dy, y})
        next.add(m.row_range(query, left(query)));
    if (pair.ahead() == 0)
      next.add(gradient.q.row_range(pair.first, pair.queries));
    if (query == y.rows) {
      for (const auto& m : {in.k, in.v})
        next.add(m.row_range(key, left(key)));
      for (const auto& m : {gradient.k, gradient.v})
        next.add(m.row_range(pair.key, pair.keys));
    }
    return next;
  }
};

} // namespace

std::int64_t fused_attention::backward_scratch(std::int64_t length, std::int64_t size) {
  return backward_space{length, size}.end;
}

std::int64_t fused_attention::scratch(std::int64_t length, std::int64_t size) {
  return std::max(forward_scratch(length, size), backward_scratch(length, size));
}

void fused_attention::backward(const head_matrices<const float>& in,
                               matrix<const float> y, const float* log_sum,
                               matrix<const float> dy,
                               const head_matrices<float>& gradient, float* space,
                               precision score_precision) {
  const auto length = y.rows, size = y.columns;
  const float scale = scale_of_scores(size);
  const backward_space buffers{length, size, space};
  const head_backward head{in, y, dy, gradient, buffers};
  for (auto* const array : {buffers.log_sum, buffers.dots})
    std::fill_n(array, round_up(block, length), 0.0F);
  std::copy_n(log_sum, length, buffers.log_sum);
  for (std::int64_t key = 0; key < length; key += block) {
    const auto keys = head.left(key);
    for (auto first = key; first < length; first += block) {
      const block_pair pair{key, keys, first, head.left(first)};
      if (key == 0)
        head.pack_queries(pair);
      if (first == key)
        head.pack_keys(pair);
      auto next = head.next_rows(pair);
      make_weights(buffers, pair, scale, score_precision, next);
      add_to_queries(buffers, pair);
      add_to_keys(buffers.ds, buffers.q_values, pair, buffers.dk, next);
      add_to_keys(buffers.p, buffers.dy_values, pair, buffers.dv, next);
      if (first == key) // all keys are in the sums of these queries
        buffers.dq.unpack(first, gradient.q.row_range(first, pair.queries));
    }
    buffers.dk.unpack(0, gradient.k.row_range(key, keys));
    buffers.dv.unpack(0, gradient.v.row_range(key, keys));
  }
}

} // namespace troupe
