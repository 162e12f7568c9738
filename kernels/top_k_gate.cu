// SPDX-License-Identifier: BSD-3-Clause
// A gate on a GPU. One warp per row finds the experts of the row; one warp per expert
// then gives positions to the rows.

#include "kernels/cuda/kernels.hpp"
#include "kernels/cuda/source.hpp"
#include "kernels/cuda/stored.hpp"
#include "kernels/cuda/warp.hpp"
#include "kernels/top_k_gate.hpp"

#include <cmath>

namespace troupe::cuda {

namespace {

constexpr int choices_at_once = 4; // that a thread compares
/// e^x; 0 where the CPU's exponential is 0, so that the same experts tie.
__device__ float exponential(float x) {
  return x < -87.3F ? 0 : expf(x);
}

__device__ void softmax(float* x, int n) {
  const int lane = threadIdx.x % warp_size;
  float most = -INFINITY;
  for (int e = lane; e < n; e += warp_size)
    most = x[e] > most ? x[e] : most;
  most = max_over_warp(most);
  float sum = 0;
  for (int e = lane; e < n; e += warp_size) {
    x[e] = exponential(x[e] - most);
    sum += x[e];
  }
  sum = sum_over_warp(sum);
  for (int e = lane; e < n; e += warp_size)
    x[e] /= sum;
}

struct choice {
  float probability;
  int expert; ///< -1: no expert, behind all choices

  /// Whether this choice precedes another: the more probable first, then the lower
  /// expert.
  __device__ bool goes_before(const choice& candidate) const {
    if (expert < 0 || candidate.expert < 0)
      return expert >= 0;
    return probability != candidate.probability ? probability > candidate.probability
                                                : expert < candidate.expert;
  }
};

/// The choice of a row whose probabilities are NaNs.
__device__ choice none() {
  return {NAN, -1};
}

/// The first choice behind `previous`, in the order of choices. A NaN among the logits
/// makes all probabilities NaNs: the result is none() then.
__device__ choice next_choice(const float* probabilities, int n,
                              const choice& previous) {
  choice best = none();
  for (int e = threadIdx.x % warp_size; e < n; e += warp_size) {
    const choice candidate{probabilities[e], e};
    if (candidate.probability == candidate.probability
        && (previous.expert < 0 || previous.goes_before(candidate))
        && candidate.goes_before(best))
      best = candidate;
  }
  for (int apart = warp_size / 2; apart > 0; apart /= 2) {
    const float probability = __shfl_xor_sync(whole_warp, best.probability, apart);
    const choice received{probability, __shfl_xor_sync(whole_warp, best.expert, apart)};
    if (received.goes_before(best))
      best = received;
  }
  return best;
}

__global__ void choose(float* probabilities, float* weights, std::int32_t* chosen,
                       std::int64_t rows, int n, int k) { // R
  const auto row = own_row();
  if (row >= rows)
    return;
  auto* const row_probabilities = probabilities + row * n;
  softmax(row_probabilities, n);
  const bool writes = threadIdx.x % warp_size == 0;
  choice last = none();
  float sum = 0;
  for (int c = 0; c < k; ++c) {
    last = next_choice(row_probabilities, n, last);
    sum += last.probability;
    if (writes) {
      chosen[row * k + c] = last.expert < 0 ? c : last.expert;
      weights[row * k + c] = last.probability;
    }
  }
  for (int c = 0; c < k && k > 1 && writes; ++c)
    weights[row * k + c] /= sum;
}

/// Assigns rows to this warp's expert: first choices before second choices, rows in
/// order.
__global__ void assign_positions(const std::int32_t* chosen, std::int32_t* positions,
                                 std::int32_t* counts, std::int32_t* first,
                                 std::int64_t rows, int k, std::int64_t capacity) {
  const int expert = static_cast<int>(blockIdx.x), lane = threadIdx.x % warp_size;
  std::int32_t count = 0;
  for (int c = 0; c < k; ++c) {
    for (std::int64_t begin = 0; begin < rows; begin += choices_at_once * warp_size) {
      bool wants[choices_at_once];
      for (int i = 0; i < choices_at_once; ++i) {
        const auto row = begin + i * warp_size + lane;
        wants[i] = row < rows && chosen[row * k + c] == expert;
      }
      for (int i = 0; i < choices_at_once; ++i) {
        const auto bits = __ballot_sync(whole_warp, wants[i]);
        const auto position = count + __popc(bits & ((1U << lane) - 1));
        if (wants[i])
          positions[(begin + i * warp_size + lane) * k + c] =
            position < capacity ? position : -1;
        count += __popc(bits);
      }
    }
    if (c == 0 && lane == 0)
      first[expert] = count;
  }
  if (lane == 0)
    counts[expert] = count < capacity ? count : static_cast<std::int32_t>(capacity);
}

/// Turns positions within an expert into positions among all rows.
__global__ void sort_by_expert(const std::int32_t* chosen, const std::int32_t* counts,
                               std::int32_t* positions, std::int64_t choices) {
  const auto i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i >= choices || positions[i] < 0)
    return;
  std::int32_t begin = 0;
  for (int e = 0; e < chosen[i]; ++e)
    begin += counts[e];
  positions[i] += begin;
}

__global__ void gradients(const float* probabilities, const float* weights,
                          const std::int32_t* chosen, const std::int32_t* first,
                          const float* dweights, float balance, float* dlogits,
                          std::int64_t rows, int n, int k) {
  const auto row = own_row();
  if (row >= rows)
    return;
  const auto* const p = probabilities + row * n;
  const auto *const w = weights + row * k, *const dw = dweights + row * k;
  const auto* const experts = chosen + row * k;
  float sum = 1, of_weights = 0;
  if (k > 1) {
    sum = 0;
    for (int c = 0; c < k; ++c) {
      sum += p[experts[c]];
      of_weights += dw[c] * w[c];
    }
  }
  const auto row_count = static_cast<float>(rows);
  const float evenly = balance * static_cast<float>(n) / (row_count * row_count);
  const auto of_probability = [&](int e) {
    float result = evenly * static_cast<float>(first[e]);
    for (int c = 0; c < k; ++c)
      if (experts[c] == e)
        result += (dw[c] - of_weights) / sum;
    return result;
  };
  const int lane = threadIdx.x % warp_size;
  float mean = 0;
  for (int e = lane; e < n; e += warp_size)
    mean += p[e] * of_probability(e);
  mean = sum_over_warp(mean);
  for (int e = lane; e < n; e += warp_size)
    dlogits[row * n + e] = p[e] * (of_probability(e) - mean);
}

} // namespace

void top_k_gate::forward(const gate_table<float>& to, stream_handle stream) {
  const int n = to.rule.experts, k = to.rule.chosen;
  const auto choices = to.rows * k;
  launch(stream, {blocks_of(to.rows, warps_a_block), 1, 1}, {block_threads, 1, 1}, 0,
         choose, to.probabilities, to.weights, to.chosen, to.rows, n, k);
  launch(stream, {blocks_of(n, 1), 1, 1}, {warp_size, 1, 1}, 0, assign_positions,
         to.chosen, to.positions, to.counts, to.first, to.rows, k, to.rule.capacity);
  launch(stream, {blocks_of(choices, block_threads), 1, 1}, {block_threads, 1, 1}, 0,
         sort_by_expert, to.chosen, to.counts, to.positions, choices);
}

void top_k_gate::backward(const gate_table<float>& table, const float* dweights,
                          float balance, float* dlogits, stream_handle stream) {
  launch(stream, {blocks_of(table.rows, warps_a_block), 1, 1}, {block_threads, 1, 1}, 0,
         gradients, table.probabilities, table.weights, table.chosen, table.first,
         dweights, balance, dlogits, table.rows, table.rule.experts, table.rule.chosen);
}

} // namespace troupe::cuda
