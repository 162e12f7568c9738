// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/cuda/on_host/plain_attention.hpp"

#include "kernels/cuda/on_host/watched_rows.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <vector>

namespace troupe::on_host {

namespace {

std::atomic<bool> is_spoiled = false;

using doubles = std::vector<double>;

double dot(const double* a, const double* b, std::int64_t n) {
  double sum = 0;
  for (std::int64_t i = 0; i < n; ++i)
    sum += a[i] * b[i];
  return sum;
}

/// Sizes and rows of one head of one sequence.
struct one_head {
  const attention_shape& dims;
  std::int64_t sequence, number;

  std::int64_t width() const { return dims.width / dims.heads; }
  double scale() const { return 1 / std::sqrt(static_cast<double>(width())); }

  /// The first of a token's columns, in part 0, 1 or 2 of a row.
  std::int64_t place(std::int64_t stride, std::int64_t token, std::int64_t part) const {
    const auto row = dims.by_position ? token * dims.sequences + sequence
                                      : sequence * dims.length + token;
    return row * stride + part * dims.width + number * width();
  }

  /// The head's columns of all tokens: (T, C/H).
  doubles load(const stored_matrix<const float>& from, std::int64_t part) const {
    doubles result;
    for (std::int64_t t = 0; t < dims.length; ++t)
      for (std::int64_t c = 0; c < width(); ++c)
        result.push_back(
          fp32_of(from.rounded().data[place(from.stride, t, part) + c].bits));
    return result;
  }

  void store(const doubles& values, const stored_matrix<float>& to,
             std::int64_t part) const {
    for (std::int64_t t = 0; t < dims.length; ++t)
      for (std::int64_t c = 0; c < width(); ++c)
        to.rounded().data[place(to.stride, t, part) + c].bits = bf16_of(
          static_cast<float>(values[static_cast<std::size_t>(t * width() + c)]));
  }

  /// Index of the token's value in log_sum (B, H, T).
  std::int64_t row_index(std::int64_t token) const {
    return (sequence * dims.heads + number) * dims.length + token;
  }
};

template <class Body>
void for_each_head(const attention_shape& dims, const Body& body) {
  for (std::int64_t sequence = 0; sequence < dims.sequences; ++sequence)
    for (std::int64_t number = 0; number < dims.heads; ++number)
      body(one_head{dims, sequence, number});
}

std::int64_t bytes_of_log_sum(const attention_shape& dims) {
  return dims.sequences * dims.heads * dims.length
         * static_cast<std::int64_t>(sizeof(float));
}

} // namespace

void attend(const attention_shape& dims, const stored_matrix<const float>& qkv,
            const stored_matrix<float>& y, float* log_sum) {
  watch_rows(qkv, access_kind::read);
  watch_rows(y, access_kind::write);
  watch_library(log_sum, bytes_of_log_sum(dims), access_kind::write);
  for_each_head(dims, [&](const one_head& of) {
    const auto width = of.width();
    const auto q = of.load(qkv, 0), k = of.load(qkv, 1), v = of.load(qkv, 2);
    doubles out(q.size());
    for (std::int64_t t = 0; t < dims.length; ++t) {
      doubles weights;
      for (std::int64_t key = 0; key <= t; ++key)
        weights.push_back(dot(&q[t * width], &k[key * width], width) * of.scale());
      const auto most = *std::ranges::max_element(weights);
      double sum = 0;
      for (auto& weight : weights)
        sum += weight = std::exp(weight - most);
      for (std::int64_t key = 0; key <= t; ++key)
        for (std::int64_t c = 0; c < width; ++c)
          out[t * width + c] += weights[key] / sum * v[key * width + c];
      log_sum[of.row_index(t)] = static_cast<float>(most + std::log(sum));
    }
    of.store(out, y, 0);
  });
}

void attend_backward(const attention_shape& dims, const stored_matrix<const float>& qkv,
                     const stored_matrix<const float>& y, const float* log_sum,
                     const stored_matrix<const float>& dy,
                     const stored_matrix<float>& dqkv) {
  for (const auto& read : {qkv, y, dy})
    watch_rows(read, access_kind::read);
  watch_library(log_sum, bytes_of_log_sum(dims), access_kind::read);
  watch_rows(dqkv, access_kind::write);
  for_each_head(dims, [&](const one_head& of) {
    const auto width = of.width();
    const auto q = of.load(qkv, 0), k = of.load(qkv, 1), v = of.load(qkv, 2),
               out = of.load(y, 0), upper = of.load(dy, 0);
    doubles dq(q.size()), dk(q.size()), dv(q.size());
    for (std::int64_t t = 0; t < dims.length; ++t) {
      const auto* const du = &upper[t * width];
      const auto row_dot = dot(&out[t * width], du, width);
      for (std::int64_t key = 0; key <= t; ++key) {
        const auto score = dot(&q[t * width], &k[key * width], width) * of.scale(),
                   weight = std::exp(score - log_sum[of.row_index(t)]);
        const auto dscore = weight * (dot(du, &v[key * width], width) - row_dot)
                            * (is_spoiled ? 1 : of.scale());
        for (std::int64_t c = 0; c < width; ++c) {
          dq[t * width + c] += dscore * k[key * width + c];
          dk[key * width + c] += dscore * q[t * width + c];
          dv[key * width + c] += weight * du[c];
        }
      }
    }
    of.store(dq, dqkv, 0);
    of.store(dk, dqkv, 1);
    of.store(dv, dqkv, 2);
  });
}

void spoil_attention(bool spoiled) {
  is_spoiled = spoiled;
}

} // namespace troupe::on_host
