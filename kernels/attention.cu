// SPDX-License-Identifier: BSD-3-Clause
// Causal self-attention on a GPU. Dao et al., "FlashAttention", 2022, and Dao,
// "FlashAttention-2", 2023. A block has some queries, and loops over the keys that the
// queries see.

#include "kernels/attention.hpp"
#include "kernels/cuda/attention_heads.hpp"
#include "kernels/cuda/kernels.hpp"

namespace troupe::cuda {

namespace {

/// The maximum over the lanes that share a row; NaNs are ignored.
__device__ float max_of_row(float value) {
  for (int apart = 1; apart < 4; apart *= 2)
    value = fmaxf(value, __shfl_xor_sync(whole_warp, value, apart));
  return value;
}

__device__ float sum_of_row(float value) {
  for (int apart = 1; apart < 4; apart *= 2)
    value += __shfl_xor_sync(whole_warp, value, apart);
  return value;
}

/// The softmax of a lane's two rows over the keys so far. Milakov & Gimelshein, "Online
/// normalizer calculation for softmax", 2018.
struct running_softmax {
  float most[2] = {-INFINITY, -INFINITY}; ///< The largest score.
  /// Sums of 2^(scale (score - most)) over this lane's columns.
  float sums[2] = {};

  /// Turns the scores of more keys into 2^(scale (score - most)), and scores that are
  /// not seen into 0. \param factors filled with the factors for all earlier sums of
  /// the two rows
  template <int Keys, class Seen>
  __device__ void add(strip<Keys>& scores, const Seen& seen, float scale,
                      float (&factors)[2]) {
    TROUPE_UNROLL
    for (int half = 0; half < 2; ++half) {
      float now = most[half];
      TROUPE_UNROLL
      for (int block = 0; block < Keys / 8; ++block)
        for (int i = 2 * half; i < 2 * half + 2; ++i) {
          auto& score = scores.values[block][i];
          if (!seen.has(block / 2, scores.row(i), scores.column(block % 2, i)))
            score = -INFINITY;
          now = fmaxf(now, score);
        }
      now = max_of_row(now);
      // If all scores of a row are -infinity, the base is 0, so that no score becomes
      // NaN.
      const float base = now == -INFINITY ? 0 : scale * now;
      factors[half] = exp2f(scale * most[half] - base);
      most[half] = now;
      float added = 0;
      TROUPE_UNROLL
      for (int block = 0; block < Keys / 8; ++block)
        for (int i = 2 * half; i < 2 * half + 2; ++i) {
          auto& score = scores.values[block][i];
          score = exp2f(fmaf(scale, score, -base));
          added += score;
        }
      sums[half] = sums[half] * factors[half] + added;
    }
  }
};

template <class Value, int Width, class Tiles = forward_tiles<Value, Width>>
__global__ void __launch_bounds__(Tiles::threads, Tiles::forward_blocks)
  attend(attention_shape dims, token_matrix qkv, token_matrix y, float* log_sum) {
  constexpr int step = Tiles::forward_step;
  TROUPE_DYNAMIC_SHARED(Value, space);
  const tile<Value, Width> queries{space};
  const block_of_head position{dims, Tiles::rows, true};
  const head_columns q{qkv, dims, position.slice, 0}, out{y, dims, position.slice, 0};
  const steps_of_rows<Value, Width, step, Tiles::threads> steps{
    queries.below(Tiles::rows),
    {qkv, dims, position.slice, 1},
    {qkv, dims, position.slice, 2}};
  const int warp_row = static_cast<int>(threadIdx.x) / warp_size * chunk,
            first = position.first + warp_row,
            end = position.first + Tiles::rows < q.length ? position.first + Tiles::rows
                                                          : q.length;
  const float scale = scale_of_scores(q.width);
  running_softmax softmax;
  strip<Width> sums{};
  const auto add_keys = [&](int key, const auto& seen) {
    strip<step> scores{};
    multiply_by_rows(scores, queries.below(warp_row), steps.first_at(key), seen);
    float factors[2];
    softmax.add(scores, seen, scale * log2_of_e, factors);
    TROUPE_UNROLL
    for (int block = 0; block < Width / 8; ++block)
      for (int i = 0; i < 4; ++i)
        sums.values[block][i] *= factors[i / 2];
    multiply(sums, scores, steps.second_at(key), seen);
  };
  q.template begin_load<Tiles::rows, Tiles::threads>(queries, position.first);
  go_through_keys(steps, first, end, add_keys);
  for (auto& sum : softmax.sums)
    sum = sum_of_row(sum);
  out.store(sums, first, 0, {1 / softmax.sums[0], 1 / softmax.sums[1]});
  for (int half = 0; half < 2; ++half) {
    const int token = first + sums.row(2 * half);
    if (token < q.length && lane() % 4 == 0)
      log_sum[position.slice * dims.length + token] =
        scale * softmax.most[half] + logf(softmax.sums[half]);
  }
}

} // namespace

void attention::forward(const attention_shape& dims, input qkv, output y,
                        float* log_sum, stream_handle stream) {
  by_tile(dims, qkv.is_bf16, [&](auto value, auto width) {
    using tiles = forward_tiles<decltype(value), width>;
    constexpr auto room = tiles::room(tiles::rows + 4 * tiles::forward_step);
    static_assert(room <= most_room);
    launch(stream, {blocks_of_heads(dims, tiles::rows), 1, 1}, {tiles::threads, 1, 1},
           room, attend<decltype(value), width>, dims, token_matrix_of(dims, qkv),
           token_matrix_of(dims, y), log_sum);
  });
}

} // namespace troupe::cuda
