// SPDX-License-Identifier: BSD-3-Clause
// Softmax with cross-entropy on a GPU: one block per row. A row whose gradient is bf16
// is read once, and stays in registers while sweeps find the largest logit, the sum of
// exponentials and the gradient.
//
// Other rows, and rows too long, are read twice. The first pass finds the largest logit
// and the sum of exponentials together. (Milakov and Gimelshein, "Online normalizer
// calculation for softmax", 2018.) The second pass writes the gradient.

#include "kernels/cross_entropy.hpp"
#include "kernels/cuda/held_row.hpp"
#include "kernels/cuda/kernels.hpp"
#include "kernels/cuda/source.hpp"
#include "kernels/cuda/stored.hpp"
#include "kernels/cuda/warp.hpp"

#include <cmath>
#include <type_traits>

namespace troupe::cuda {

namespace {

constexpr int most_warps = 32;

/// The contribution of some of a row's logits to the softmax.
struct mass {
  float most; ///< The largest logit; -infinity if there are none.
  float sum;  ///< Sum of e^(x - most).
  int first;  ///< First column of the largest logit.
};

__device__ mass nothing() {
  return {-INFINITY, 0, 0x7fffffff};
}

/// The larger value; NaN if one is NaN.
__device__ float larger(float a, float b) {
  return b > a || b != b ? b : a;
}

/// Merges two parts of a row. merged(b, a) has the same bits, so threads that merge
/// from both sides agree.
__device__ mass merged(mass a, mass b) {
  const bool turned = b.most > a.most || b.most != b.most;
  const mass upper = turned ? b : a, lower = turned ? a : b;
  if (upper.most == -INFINITY) // -infinity minus itself is a NaN
    return nothing();
  const bool earlier = lower.most == upper.most && lower.first < upper.first;
  return {upper.most, upper.sum + lower.sum * expf(lower.most - upper.most),
          earlier ? lower.first : upper.first};
}

__device__ mass merged_over_warp(mass part) {
  for (int apart = warp_size / 2; apart > 0; apart /= 2) {
    const float most = __shfl_xor_sync(whole_warp, part.most, apart);
    const float sum = __shfl_xor_sync(whole_warp, part.sum, apart);
    part = merged(part, {most, sum, __shfl_xor_sync(whole_warp, part.first, apart)});
  }
  return part;
}

/// Returns the merged parts to every thread of the block, with the same bits.
__device__ mass merged_over_block(mass part) {
  TROUPE_SHARED(float, most, [most_warps]);
  TROUPE_SHARED(float, sums, [most_warps]);
  TROUPE_SHARED(int, firsts, [most_warps]);
  const unsigned lane = threadIdx.x % warp_size, warp = threadIdx.x / warp_size;
  part = merged_over_warp(part);
  if (lane == 0) {
    most[warp] = part.most;
    sums[warp] = part.sum;
    firsts[warp] = part.first;
  }
  __syncthreads();
  part = nothing();
  if (lane < blockDim.x / warp_size)
    part = {most[lane], sums[lane], firsts[lane]};
  return merged_over_warp(part);
}

/// The contribution of a whole row.
template <int N>
__device__ mass mass_of_row(stored logits, std::int64_t row, int columns) {
  mass part = nothing();
  float x[N];
  for (int c = threadIdx.x * N; c < columns; c += blockDim.x * N) {
    logits.load(row, c, x);
    float most = part.most;
    for (int i = 0; i < N; ++i)
      most = larger(most, x[i]);
    if (most == -INFINITY)
      continue;
    if (most > part.most)
      for (int i = N - 1; i >= 0; --i)
        part.first = x[i] == most ? c + i : part.first;
    part.sum *= expf(part.most - most);
    for (int i = 0; i < N; ++i)
      part.sum += expf(x[i] - most);
    part.most = most;
  }
  return merged_over_block(part);
}

/// Whether the label has the first of the largest logits. \param label may be in
/// another shard
__device__ bool is_first_largest(mass total, std::int64_t label) {
  return total.first == label && total.most == total.most; // false for a NaN
}

/// Stores turn(x) for each logit x, less `scale` at the label's column. A gradient of
/// bf16 overwrites logits of earlier columns, which all threads have loaded by then.
/// \param label may be elsewhere
template <int N, class Turn>
__device__ void rewrite_row(stored logits, stored gradient, std::int64_t row,
                            int columns, std::int64_t label, float scale,
                            const Turn& turn) {
  float x[N];
  for (int begin = 0; begin < columns; begin += blockDim.x * N) {
    const int c = begin + threadIdx.x * N;
    if (c < columns)
      logits.load(row, c, x);
    if (gradient.is_bf16)
      __syncthreads();
    if (c >= columns)
      continue;
    for (int i = 0; i < N; ++i)
      x[i] = c + i == label ? turn(x[i]) - scale : turn(x[i]);
    gradient.store(row, c, x);
  }
}

/// The label's logit; 0 if another shard has the label.
__device__ float label_of_row(stored logits, std::int64_t row, int columns,
                              std::int64_t label) {
  float value[1] = {0};
  if (label >= 0 && label < columns)
    logits.load(row, label, value);
  return value[0];
}

template <int N>
__global__ void __launch_bounds__(most_warps* warp_size)
  gradients(stored logits, const std::int32_t* labels, float scale, stored gradient,
            float* row_losses, std::int32_t* correct, int columns) { // V
  const std::int64_t row = blockIdx.x;
  const auto label = labels[row];
  // Read before the block's barrier, behind which logits become gradients.
  const float label_logit =
    threadIdx.x == 0 ? label_of_row(logits, row, columns, label) : 0;
  const auto total = mass_of_row<N>(logits, row, columns);
  if (threadIdx.x == 0) {
    row_losses[row] = total.most + logf(total.sum) - label_logit;
    correct[row] = is_first_largest(total, label) ? 1 : 0;
  }
  const float factor = scale / total.sum;
  rewrite_row<N>(logits, gradient, row, columns, label, scale,
                 [&](float x) { return expf(x - total.most) * factor; });
}

// e^(x - most) is 2^(x log2_of_e - shift): one instruction computes the exponent. The
// rounding error of the shift is in all terms of a sum, and the loss takes it back.
constexpr float log2_of_e = 1.44269504F, log_of_2 = 0.693147181F;

/// The gradients of rows that a block holds in registers. A NaN among the logits makes
/// the row's loss and gradients NaNs, by the sum.
/// \pre as for held_row
template <class Row, int Blocks>
__global__ void __launch_bounds__(Row::threads, Blocks)
  gradients_of_held(stored logits, const std::int32_t* labels, float scale,
                    stored gradient, float* row_losses, std::int32_t* correct,
                    int columns) {
  TROUPE_SHARED(float, space, [3][Row::threads / warp_size]);
  const std::int64_t row = blockIdx.x;
  const Row held{logits, row, columns};
  const auto label = labels[row];
  // Read before the block's barriers, behind which logits become gradients.
  const float label_logit = label_of_row(logits, row, columns, label);
  const float most = max_over_block(held.largest(), space[0]);
  const float shift = most * log2_of_e;
  const auto exponential = [&](float x) {
    return power_of_two(fmaf(x, log2_of_e, -shift));
  };
  float sum = 0;
  held.for_values([&](float x, int) { sum += exponential(x); });
  sum = sum_over_block(sum, space[1]);
  const float factor = scale / sum;
  held.store(gradient, row, [&](float x, int column) {
    return exponential(x) * factor - (column == label ? scale : 0);
  });
  bool hit = label_logit == most && sum == sum; // the same in all threads
  if (hit) {
    float earlier = 0; // places with the same logit
    const int distance = held.distance_to(label);
    held.for_values(
      [&](float x, int d) { earlier += x == most && d < distance ? 1 : 0; });
    hit = sum_over_block(earlier, space[2]) == 0;
  }
  if (threadIdx.x == 0) {
    const float error = fmaf(most, log2_of_e, -shift);
    row_losses[row] = (most - label_logit) + (logf(sum) - error * log_of_2);
    correct[row] = hit ? 1 : 0;
  }
}

/// \param local_facts three facts of each row: see cross_entropy.hpp
template <int N>
__global__ void __launch_bounds__(most_warps* warp_size)
  facts_of_shard(stored logits, std::int64_t first, const std::int32_t* labels,
                 float* local_facts, int columns) {
  const std::int64_t row = blockIdx.x, rows = gridDim.x;
  if (threadIdx.x == 0)
    local_facts[2 * rows + row] =
      label_of_row(logits, row, columns, labels[row] - first);
  const auto total = mass_of_row<N>(logits, row, columns);
  if (threadIdx.x == 0) {
    local_facts[row] = total.most;
    local_facts[rows + row] =
      is_first_largest(total, labels[row] - first) ? -total.sum : total.sum;
  }
}

template <int N>
__global__ void __launch_bounds__(most_warps* warp_size)
  gradients_of_shard(stored logits, std::int64_t first, const std::int32_t* labels,
                     const float* facts, int shards, int local_shard, float scale,
                     stored gradient, float* row_losses, std::int32_t* correct,
                     int columns) {
  const std::int64_t row = blockIdx.x, rows = gridDim.x;
  const auto fact = [&](int shard, int which) {
    return facts[(std::int64_t{3} * shard + which) * rows + row];
  };
  float most = fact(0, 0);
  int upper = 0; // the first shard with the largest
  for (int t = 1; t < shards; ++t) {
    upper = fact(t, 0) > most ? t : upper;
    most = larger(most, fact(t, 0));
  }
  float sum = 0, labelled = 0;
  for (int t = 0; t < shards; ++t) {
    sum += fabsf(fact(t, 1)) * expf(fact(t, 0) - most);
    labelled += fact(t, 2);
  }
  const float local_most = fact(local_shard, 0);
  const float factor = scale * expf(local_most - most) / sum;
  rewrite_row<N>(logits, gradient, row, columns, labels[row] - first, scale,
                 [&](float x) { return expf(x - local_most) * factor; });
  if (threadIdx.x == 0) {
    row_losses[row] = most + logf(sum) - labelled;
    correct[row] = most == most && fact(upper, 1) < 0 ? 1 : 0;
  }
}

template <int N>
using blocks = std::integral_constant<int, N>;

constexpr int sum_threads = 256;

__global__ void sum_of_rows(const float* row_losses, const std::int32_t* correct,
                            std::int64_t rows, loss_sum* to) {
  TROUPE_SHARED(double, losses, [sum_threads / warp_size]);
  TROUPE_SHARED(double, hits, [sum_threads / warp_size]);
  double loss = 0, correct_rows = 0;
  for (std::int64_t r = threadIdx.x; r < rows; r += sum_threads) {
    loss += static_cast<double>(row_losses[r]);
    correct_rows += correct[r];
  }
  loss = sum_over_block(loss, losses);
  correct_rows = sum_over_block(correct_rows, hits);
  if (threadIdx.x == 0) {
    to->loss = loss;
    to->correct = static_cast<std::int64_t>(correct_rows);
  }
}

/// Threads of a block: no more than the columns need.
template <int N>
unsigned threads_of(std::int64_t columns) {
  const auto warps = blocks_of(columns, warp_size * N);
  return (warps < most_warps ? warps : most_warps) * warp_size;
}

/// Calls f with the type of held_row that holds rows of `columns` values in the fewest
/// registers, and with the number of blocks that a multiprocessor shall run. Returns
/// false if rows are too long.
template <class F>
bool by_held_row(std::int64_t columns, const F& f) {
  const auto call_if_held = [&](auto row, auto blocks) {
    const bool fits = columns <= decltype(row)::type::longest;
    if (fits)
      f(row, blocks);
    return fits;
  };
  return call_if_held(std::type_identity<held_row<64, 8>>{}, blocks<8>{})
         || call_if_held(std::type_identity<held_row<256, 8>>{}, blocks<3>{})
         || call_if_held(std::type_identity<held_row<256, 25>>{}, blocks<2>{})
         || call_if_held(std::type_identity<held_row<512, 25>>{}, blocks<1>{});
}

} // namespace

void cross_entropy::forward(matrix<float> logits, const std::int32_t* labels,
                            float scale, output gradient, float* row_losses,
                            std::int32_t* correct, stream_handle stream) {
  const auto columns = static_cast<int>(logits.columns);
  const output rows{logits};
  if (gradient.is_bf16 && is_wide(rows) && is_wide(gradient)
      && by_held_row(logits.columns, [&](auto row, auto blocks) {
           using held = typename decltype(row)::type;
           launch(stream, {blocks_of(logits.rows, 1), 1, 1}, {held::threads, 1, 1}, 0,
                  gradients_of_held<held, blocks>, stored_of(rows), labels, scale,
                  stored_of(gradient), row_losses, correct, columns);
         }))
    return;
  by_pack(
    [&](auto n) {
      launch(stream, {blocks_of(logits.rows, 1), 1, 1},
             {threads_of<n>(logits.columns), 1, 1}, 0, gradients<n>, stored_of(rows),
             labels, scale, stored_of(gradient), row_losses, correct, columns);
    },
    rows, gradient);
}

void cross_entropy::prepare(matrix<const float> logits, std::int64_t first,
                            const std::int32_t* labels, float* local_facts,
                            stream_handle stream) {
  by_pack(
    [&](auto n) {
      launch(stream, {blocks_of(logits.rows, 1), 1, 1},
             {threads_of<n>(logits.columns), 1, 1}, 0, facts_of_shard<n>,
             stored_of(input{logits}), first, labels, local_facts,
             static_cast<int>(logits.columns));
    },
    input{logits});
}

void cross_entropy::finish(matrix<float> logits, std::int64_t first,
                           const std::int32_t* labels, const float* all_facts,
                           int shards, int local_shard, float scale, output gradient,
                           float* row_losses, std::int32_t* correct,
                           stream_handle stream) {
  by_pack(
    [&](auto n) {
      launch(stream, {blocks_of(logits.rows, 1), 1, 1},
             {threads_of<n>(logits.columns), 1, 1}, 0, gradients_of_shard<n>,
             stored_of(output{logits}), first, labels, all_facts, shards, local_shard,
             scale, stored_of(gradient), row_losses, correct,
             static_cast<int>(logits.columns));
    },
    output{logits}, gradient);
}

void cross_entropy::sum(const float* row_losses, const std::int32_t* correct,
                        std::int64_t rows, loss_sum* to, stream_handle stream) {
  launch(stream, {1, 1, 1}, {sum_threads, 1, 1}, 0, sum_of_rows, row_losses, correct,
         rows, to);
}

} // namespace troupe::cuda
