// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/key_value_cache.hpp"

#include "kernels/memory.hpp"
#include "kernels/vector_math.hpp"

#include <algorithm>
#include <cmath>

namespace troupe {

namespace {

/// The arrays of one head in a cache. Views; the caller owns the cache.
template <class Scalar>
struct cached_head {
  cached_head(const next_tokens& dims, Scalar* cache, std::int64_t head)
    : size(dims.width / dims.heads),
      keys(cache + head * dims.positions * size),
      values(cache + padded(dims.positions * dims.width)
             + head * dims.positions * size),
      scores(cache + 2 * padded(dims.positions * dims.width)
             + head * padded(dims.positions)) {
    // nop
  }

  std::int64_t size;     // C/H
  Scalar *keys, *values; // (T, C/H)
  Scalar* scores;        // (T)
};

/// Computes one token's weighted mean of the values of the first `seen` tokens.
template <class Scalar>
void attend_to(const cached_head<Scalar>& head, std::int64_t seen, const Scalar* query,
               Scalar* to) {
  const Scalar scale = 1 / std::sqrt(static_cast<Scalar>(head.size));
  auto* const weights = head.scores;
  for (std::int64_t t = 0; t < seen; ++t) {
    const auto* const key = head.keys + t * head.size;
    Scalar sum = 0;
    for (std::int64_t c = 0; c < head.size; ++c)
      sum += query[c] * key[c];
    weights[t] = sum * scale;
  }
  const Scalar most = largest(weights, seen);
  Scalar sum = 0;
  for (std::int64_t t = 0; t < seen; ++t) {
    weights[t] = fast_exp(weights[t] - most);
    sum += weights[t];
  }
  std::fill_n(to, head.size, Scalar{0});
  for (std::int64_t t = 0; t < seen; ++t) {
    const auto* const value = head.values + t * head.size;
    const Scalar weight = weights[t] / sum;
    for (std::int64_t c = 0; c < head.size; ++c)
      to[c] += weight * value[c];
  }
}

} // namespace

template <class Scalar>
std::int64_t key_value_cache<Scalar>::values(std::int64_t positions, std::int64_t heads,
                                             std::int64_t width) {
  return 2 * padded(positions * width) + heads * padded(positions);
}

template <class Scalar>
void key_value_cache<Scalar>::put(const next_tokens& dims, matrix<const Scalar> qkv,
                                  Scalar* cache, stream& stream) {
  stream.cpu().run(static_cast<int>(dims.heads), [&](int head, int) {
    const cached_head<Scalar> to{dims, cache, head};
    for (std::int64_t r = 0; r < qkv.rows; ++r) {
      const auto* const query = qkv.row(r) + head * to.size;
      const auto position = (dims.past + r) * to.size;
      std::copy_n(query + dims.width, to.size, to.keys + position);
      std::copy_n(query + 2 * dims.width, to.size, to.values + position);
    }
  });
}

template <class Scalar>
void key_value_cache<Scalar>::attend(const next_tokens& dims, matrix<const Scalar> qkv,
                                     Scalar* cache, matrix<Scalar> y, stream& stream) {
  stream.cpu().run(static_cast<int>(dims.heads), [&](int head, int) {
    const cached_head<Scalar> head_arrays{dims, cache, head};
    for (std::int64_t r = 0; r < qkv.rows; ++r)
      attend_to(head_arrays, dims.past + r + 1, qkv.row(r) + head * head_arrays.size,
                y.row(r) + head * head_arrays.size);
  });
}

template struct key_value_cache<float>;
template struct key_value_cache<double>;

} // namespace troupe
