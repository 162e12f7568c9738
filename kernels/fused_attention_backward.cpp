// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/array_shelf.hpp"
#include "kernels/attention_scores.hpp"
#include "kernels/bf16.hpp"
#include "kernels/fused_attention.hpp"

namespace troupe {

namespace {

// Number of keys, and of queries, whose scores are computed together.
constexpr std::int64_t block = 2 * panel;

struct backward_space {
  backward_space(std::int64_t length, std::int64_t size, float* begin = nullptr) {
    array_shelf<float> all{begin};
    const auto tokens = [&](std::int64_t count) {
      return token_panels{all.take(token_panels::room(count, size)), size};
    };
    const auto values = [&](std::int64_t count) {
      return value_panels{all.take(value_panels::room(count, size)), count, size};
    };
    q = tokens(length);
    dy = tokens(length);
    q_values = values(length);
    dy_values = values(length);
    dq = values(up_to(tile_rows, length));
    k = tokens(block);
    v = tokens(block);
    k_values = values(block);
    dk = values(block);
    dv = values(block);
    p = all.take(block * block);
    ds = all.take(block * block);
    log_sum = all.take(up_to(block, length));
    dots = all.take(up_to(block, length));
    end = all.end();
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
      const auto at = k * block + q;
      const float weight = score_exp(std::fma(scale, p[at], offset[q]));
      const float gradient = weight * std::fma(scale, ds[at], less[q]);
      p[at] = Rounds ? rounded_to_bf16(weight) : weight;
      ds[at] = Rounds ? rounded_to_bf16(gradient) : gradient;
    }
}

/// A block of keys and a block of queries.
struct block_pair {
  std::int64_t key, keys;      ///< The first, and the number of keys.
  std::int64_t first, queries; ///< The first, and the number of queries.

  std::int64_t ahead() const { return first - key; }
};

void make_weights(const backward_space& own, const block_pair& at, float scale,
                  precision of_scores, coming_rows& next) {
  const auto& gradient_of =
    of_scores == precision::bf16 ? score_gradient<true> : score_gradient<false>;
  for (std::int64_t q = 0; q < at.queries; q += panel) {
    const auto query = at.first + q, ahead = query - at.key;
    auto *const p = own.p + q, *const ds = own.ds + q;
    make_scores<block>(own.k, own.q.at(query), at.keys, ahead, p, next);
    make_scores<block>(own.v, own.dy.at(query), at.keys, ahead, ds, next);
    gradient_of(p, ds, std::min(at.keys, ahead + panel), own.log_sum + query,
                own.dots + query, scale);
    for (auto* const one : {p, ds})
      hide_later<block>(one, at.keys, ahead, 0);
  }
}

/// sums (keys, C/H) += scores times the values of the queries. The first queries
/// initialise the sums.
void add_to_keys(const float* scores, const value_panels& values, const block_pair& at,
                 const value_panels& sums, coming_rows& next) {
  for (std::int64_t c = 0; c < sums.size; c += panel)
    for (std::int64_t k = 0; k < at.keys; k += tile_rows) {
      next.ask();
      const auto from = std::max<std::int64_t>(k - at.ahead(), 0);
      const auto depth = at.queries - from;
      const auto* const a = scores + k * block + from;
      const auto* const b = values.at(at.first + from, c);
      if (at.ahead() == 0)
        make_tile<2, block, panel, tile_begin::zero>(depth, a, 1, b, sums.at(k, c));
      else
        make_tile<2, block, panel, tile_begin::sum>(depth, a, 1, b, sums.at(k, c));
    }
}

/// dq += ds^T keys; the first keys initialise the sums.
void add_to_queries(const backward_space& own, const block_pair& at) {
  for (std::int64_t c = 0; c < own.dq.size; c += panel)
    for (std::int64_t q = 0; q < at.queries; q += tile_rows) {
      const auto depth = std::min(at.keys, at.ahead() + q + tile_rows);
      const auto *const a = own.ds + q, *const b = own.k_values.at(0, c);
      auto* const to = own.dq.at(at.first + q, c);
      if (at.key == 0)
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
  const backward_space& own;

  std::int64_t left(std::int64_t first) const {
    return std::min(block, y.rows - first);
  }

  void pack_queries(const block_pair& at) const {
    const auto q = in.q.row_range(at.first, at.queries);
    const auto upper = dy.row_range(at.first, at.queries);
    own.q.pack(q, at.first);
    own.q_values.pack(q, at.first);
    own.dy.pack(upper, at.first);
    own.dy_values.pack(upper, at.first);
    for (auto r = at.first; r < at.first + at.queries; ++r)
      own.dots[r] = dot(y.row(r), dy.row(r), y.columns);
  }

  void pack_keys(const block_pair& at) const {
    const auto k = in.k.row_range(at.key, at.keys);
    own.k.pack(k);
    own.k_values.pack(k);
    own.v.pack(in.v.row_range(at.key, at.keys));
  }

  /// The rows that are read or written soon after the scores of this pair.
  coming_rows after(const block_pair& at) const {
    coming_rows next;
    const auto query = at.first + at.queries, key = at.key + at.keys;
    if (at.key == 0)
      for (const auto& m : {in.q, dy, y})
        next.add(m.row_range(query, left(query)));
    if (at.ahead() == 0)
      next.add(gradient.q.row_range(at.first, at.queries));
    if (query == y.rows) {
      for (const auto& m : {in.k, in.v})
        next.add(m.row_range(key, left(key)));
      for (const auto& m : {gradient.k, gradient.v})
        next.add(m.row_range(at.key, at.keys));
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
                               precision of_scores) {
  const auto length = y.rows, size = y.columns;
  const float scale = scale_of_scores(size);
  const backward_space own{length, size, space};
  const head_backward head{in, y, dy, gradient, own};
  for (auto* const one : {own.log_sum, own.dots})
    std::fill_n(one, up_to(block, length), 0.0F);
  std::copy_n(log_sum, length, own.log_sum);
  for (std::int64_t key = 0; key < length; key += block) {
    const auto keys = head.left(key);
    for (auto first = key; first < length; first += block) {
      const block_pair at{key, keys, first, head.left(first)};
      if (key == 0)
        head.pack_queries(at);
      if (first == key)
        head.pack_keys(at);
      auto next = head.after(at);
      make_weights(own, at, scale, of_scores, next);
      add_to_queries(own, at);
      add_to_keys(own.ds, own.q_values, at, own.dk, next);
      add_to_keys(own.p, own.dy_values, at, own.dv, next);
      if (first == key) // all keys are in the sums of these queries
        own.dq.unpack(first, gradient.q.row_range(first, at.queries));
    }
    own.dk.unpack(0, gradient.k.row_range(key, keys));
    own.dv.unpack(0, gradient.v.row_range(key, keys));
  }
}

} // namespace troupe
