// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/top_k_gate.hpp"

#include "kernels/cuda/dispatch.hpp"
#include "kernels/cuda/kernels.hpp"
#include "kernels/memory.hpp"
#include "kernels/vector_math.hpp"

#include <algorithm>
#include <numeric>
#include <vector>

namespace troupe {

namespace {

/// Number of Scalars whose memory holds `integers` integers.
template <class Scalar>
std::int64_t size_of_integers(std::int64_t integers) {
  static_assert(sizeof(Scalar) >= sizeof(std::int32_t));
  return padded(integers);
}

template <class Scalar>
void softmax(Scalar* x, int n) {
  const Scalar most = *std::max_element(x, x + n);
  Scalar sum = 0;
  for (int i = 0; i < n; ++i) {
    x[i] = fast_exp(x[i] - most);
    sum += x[i];
  }
  for (int i = 0; i < n; ++i)
    x[i] /= sum;
}

/// Chooses the k most probable experts of one row, and the weights of the outputs.
/// \param order n integers of scratch
template <class Scalar>
void choose(const Scalar* probabilities, int n, int k, std::int32_t* order,
            std::int32_t* chosen, Scalar* weights) {
  std::iota(order, order + n, 0);
  std::partial_sort(order, order + k, order + n, [&](std::int32_t a, std::int32_t b) {
    return probabilities[a] != probabilities[b] ? probabilities[a] > probabilities[b]
                                                : a < b;
  });
  Scalar sum = 0;
  for (int c = 0; c < k; ++c) {
    chosen[c] = order[c];
    weights[c] = probabilities[chosen[c]];
    sum += weights[c];
  }
  for (int c = 0; c < k && k > 1; ++c)
    weights[c] /= sum;
}

} // namespace

template <class Scalar>
std::int64_t gate_table<Scalar>::values(std::int64_t rows, int experts, int chosen) {
  return padded(rows * experts) + padded(rows * chosen)
         + 2 * size_of_integers<Scalar>(rows * chosen)
         + 2 * size_of_integers<Scalar>(experts);
}

template <class Scalar>
gate_table<Scalar>::gate_table(Scalar* array, std::int64_t r, const gate_rule& routing)
  : rows(r), rule(routing) {
  const auto integers = [&](std::int64_t count) {
    auto* const result = reinterpret_cast<std::int32_t*>(array);
    array += size_of_integers<Scalar>(count);
    return result;
  };
  probabilities = array;
  weights = probabilities + padded(rows * rule.experts);
  array = weights + padded(rows * rule.chosen);
  chosen = integers(rows * rule.chosen);
  positions = integers(rows * rule.chosen);
  counts = integers(rule.experts);
  first = integers(rule.experts);
}

template <class Scalar>
void top_k_gate<Scalar>::forward(const gate_table<Scalar>& to, stream& stream) {
  if constexpr (cuda::may_run<Scalar>)
    if (auto* const gpu = stream.gpu()) {
      cuda::top_k_gate::forward(to, gpu->handle());
      return gpu->wait(); // the caller reads the counts to send rows
    }
  const int n = to.rule.experts, k = to.rule.chosen;
  std::vector<std::int32_t> order(static_cast<std::size_t>(n));
  std::fill_n(to.counts, n, 0);
  std::fill_n(to.first, n, 0);
  for (std::int64_t r = 0; r < to.rows; ++r) {
    softmax(to.probabilities + r * n, n);
    choose(to.probabilities + r * n, n, k, order.data(), to.chosen + r * k,
           to.weights + r * k);
    ++to.first[to.chosen[r * k]];
  }
  for (int c = 0; c < k; ++c) // positions within an expert for now
    for (std::int64_t r = 0; r < to.rows; ++r) {
      auto& count = to.counts[to.chosen[r * k + c]];
      to.positions[r * k + c] = count < to.rule.capacity ? count++ : -1;
    }
  std::vector<std::int32_t> begins(static_cast<std::size_t>(n));
  std::exclusive_scan(to.counts, to.counts + n, begins.begin(), 0);
  for (std::int64_t i = 0; i < to.rows * k; ++i)
    if (to.positions[i] >= 0)
      to.positions[i] += begins[static_cast<std::size_t>(to.chosen[i])];
}

template <class Scalar>
double top_k_gate<Scalar>::imbalance(const gate_table<Scalar>& table) {
  const int n = table.rule.experts;
  const auto rows = static_cast<double>(table.rows);
  double result = 0;
  for (int e = 0; e < n; ++e) {
    double probability = 0;
    for (std::int64_t r = 0; r < table.rows; ++r)
      probability += static_cast<double>(table.probabilities[r * n + e]);
    result += static_cast<double>(table.first[e]) / rows * probability / rows;
  }
  return result * n;
}

template <class Scalar>
void top_k_gate<Scalar>::backward(const gate_table<Scalar>& table,
                                  const Scalar* dweights, Scalar balance,
                                  Scalar* dlogits, stream& stream) {
  if constexpr (cuda::may_run<Scalar>)
    if (auto* const gpu = stream.gpu())
      return cuda::top_k_gate::backward(table, dweights, balance, dlogits,
                                        gpu->handle());
  const int n = table.rule.experts, k = table.rule.chosen;
  const auto rows = static_cast<Scalar>(table.rows);
  for (std::int64_t r = 0; r < table.rows; ++r) {
    const auto* const p = table.probabilities + r * n;
    const auto *const w = table.weights + r * k, *const dw = dweights + r * k;
    const auto* const chosen = table.chosen + r * k;
    auto* const d = dlogits + r * n;
    for (int e = 0; e < n; ++e) // of probabilities first
      d[e] = balance * Scalar(n) * static_cast<Scalar>(table.first[e]) / (rows * rows);
    Scalar sum = 0, of_weights = 0;
    for (int c = 0; c < k && k > 1; ++c) {
      sum += p[chosen[c]];
      of_weights += dw[c] * w[c];
    }
    for (int c = 0; c < k; ++c)
      d[chosen[c]] += k == 1 ? dw[c] : (dw[c] - of_weights) / sum;
    Scalar mean = 0;
    for (int e = 0; e < n; ++e)
      mean += p[e] * d[e];
    for (int e = 0; e < n; ++e)
      d[e] = p[e] * (d[e] - mean);
  }
}

template struct gate_table<float>;
template struct gate_table<double>;
template struct top_k_gate<float>;
template struct top_k_gate<double>;

} // namespace troupe
