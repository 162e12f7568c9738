// Causal self-attention on a GPU. Dao et al., "FlashAttention", 2022, and Dao,
// "FlashAttention-2", 2023: a block has some queries, and goes through the keys that
// they see.

#include "kernels/attention.hpp"
#include "kernels/cuda/attention_heads.hpp"
#include "kernels/cuda/kernels.hpp"

namespace troupe::cuda {

namespace {

/// The greatest of the lanes that share a row; NaNs are left out.
__device__ float max_of_row(float own) {
  for (int apart = 1; apart < 4; apart *= 2)
    own = fmaxf(own, __shfl_xor_sync(whole_warp, own, apart));
  return own;
}

__device__ float sum_of_row(float own) {
  for (int apart = 1; apart < 4; apart *= 2)
    own += __shfl_xor_sync(whole_warp, own, apart);
  return own;
}

/// The softmax of a lane's two rows over the keys so far. Milakov & Gimelshein, "Online
/// normalizer calculation for softmax", 2018.
struct running_softmax {
  float most[2] = {-INFINITY, -INFINITY}; ///< The largest score.
  float sums[2] = {};                     ///< Of 2^(scale (score - most)).

  /// Turns the scores of more keys into 2^(scale (score - most)), and those that are
  /// not seen into 0. \return by which to multiply what was summed before
  template <int Keys>
  __device__ void add(strip<Keys>& scores, const triangle<side::up_to_row>& seen,
                      float scale, float (&factors)[2]) {
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
      // Of a row whose scores all are -infinity, no score is NaN for that.
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
      sums[half] = sums[half] * factors[half] + sum_of_row(added);
    }
  }
};

template <class Value, int Width, class Tiles = attention_tiles<Value, Width>>
__global__ void __launch_bounds__(Tiles::threads)
  attend(attention_shape dims, token_matrix qkv, token_matrix y, float* log_sum) {
  constexpr int step = Tiles::forward_step;
  TROUPE_DYNAMIC_SHARED(Value, space);
  const tile<Value, Width> queries{space}, keys = queries.below(Tiles::rows),
                                           values = keys.below(step);
  const block_of_head at{dims, Tiles::rows, true};
  const head_columns q{qkv, dims, at.slice, 0}, k{qkv, dims, at.slice, 1},
    v{qkv, dims, at.slice, 2}, out{y, dims, at.slice, 0};
  const int own_row = static_cast<int>(threadIdx.x) / warp_size * chunk,
            first = at.first + own_row;
  const auto own_queries = queries.below(own_row);
  const float scale = scale_of_scores(dims);
  running_softmax softmax;
  strip<Width> sums{};
  q.load(queries, Tiles::rows, at.first);
  for (int key = 0; key < at.first + Tiles::rows && key < q.length; key += step) {
    __syncthreads();
    k.load(keys, step, key);
    v.load(values, step, key);
    __syncthreads();
    const triangle<side::up_to_row> seen{(first - key) / chunk};
    if (first < key)
      continue;
    strip<step> scores{};
    multiply_by_rows(scores, own_queries, keys, q.width, seen);
    float factors[2];
    softmax.add(scores, seen, scale * log2_of_e, factors);
    TROUPE_UNROLL
    for (int block = 0; block < Width / 8; ++block)
      for (int i = 0; i < 4; ++i)
        sums.values[block][i] *= factors[i / 2];
    multiply(sums, scores, values, q.width, seen);
  }
  out.store(sums, first, 0, {1 / softmax.sums[0], 1 / softmax.sums[1]});
  for (int half = 0; half < 2; ++half) {
    const int token = first + sums.row(2 * half);
    if (token < q.length && lane() % 4 == 0)
      log_sum[at.slice * dims.length + token] =
        scale * softmax.most[half] + logf(softmax.sums[half]);
  }
}

} // namespace

void attention::forward(const attention_shape& dims, input qkv, output y,
                        float* log_sum, stream_handle on) {
  by_tile(dims, qkv.is_bf16, [&](auto value, auto width) {
    using tiles = attention_tiles<decltype(value), width>;
    launch(on, {blocks_of_heads(dims, tiles::rows), 1, 1}, {tiles::threads, 1, 1},
           tiles::room(tiles::rows + 2 * tiles::forward_step),
           attend<decltype(value), width>, dims, token_matrix_of(dims, qkv),
           token_matrix_of(dims, y), log_sum);
  });
}

} // namespace troupe::cuda
