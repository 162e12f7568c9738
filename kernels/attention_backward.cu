// SPDX-License-Identifier: BSD-3-Clause
// The backward of causal self-attention on a GPU, as of Dao, "FlashAttention-2", 2023,
// but without atomics. A kernel for the gradients of keys and values loops over
// queries. A kernel for the gradients of queries loops over keys. Both kernels compute
// the scores again.

#include "kernels/attention.hpp"
#include "kernels/cuda/attention_heads.hpp"
#include "kernels/cuda/kernels.hpp"

namespace troupe::cuda {

namespace {

constexpr int rows_a_block = 4; // of kernels that sum rows

/// dots (B, H, T) = dy . y, one warp for each value.
template <int N>
__global__ void multiply_rows(attention_shape dims, token_matrix y, token_matrix dy,
                              float* dots) {
  const auto row_index = blockIdx.x * rows_a_block + threadIdx.x / warp_size,
             length = static_cast<unsigned>(dims.length), slice = row_index / length;
  if (slice >= dims.sequences * dims.heads)
    return;
  const head_columns out{y, dims, slice, 0};
  const auto row = out.row(static_cast<int>(row_index % length));
  float sum = 0;
  for (int c = lane() * N; c < out.width; c += warp_size * N) {
    const auto bits = y.storage.load_bits<N>(row, out.first_column + c),
               upper = dy.storage.load_bits<N>(row, out.first_column + c);
    float a[N], b[N];
    y.storage.numbers(bits, a);
    dy.storage.numbers(upper, b);
    for (int i = 0; i < N; ++i)
      sum += a[i] * b[i];
  }
  sum = sum_over_warp(sum);
  if (lane() == 0)
    dots[row_index] = sum;
}

/// The mask of the queries of a step that see 16 keys.
struct queries_of_keys {
  triangle<side::from_row> mask;
  int count; ///< Number of queries up to the last token.

  __device__ bool has(int c) const { return mask.has(c); }
  __device__ bool cuts(int c) const { return mask.cuts(c); }
  __device__ bool has(int c, int row, int column) const {
    return c * chunk + column < count && mask.has(c, row, column);
  }
};

/// Log sums and dot products of the queries of a step, for two steps.
template <int Step>
struct facts_of_steps {
  static constexpr int floats = 4 * Step; ///< Number of floats in `values`.
  float* values;
  const float *log_sum, *dots; ///< Of one sequence and head.

  /// Log sums of a step; dot products follow Step values later. \param query the step's
  /// first
  __device__ const float* at(int query) const {
    return values + query / Step % 2 * 2 * Step;
  }

  /// Starts the load of a step, with 0 behind the last query.
  __device__ void begin_load(int query, int length) const {
    const int i = static_cast<int>(threadIdx.x);
    float* const to = values + query / Step % 2 * 2 * Step + i;
    if (i >= Step)
      return;
    begin_copy<4>(to, log_sum + query + i, query + i < length);
    begin_copy<4>(to + Step, dots + query + i, query + i < length);
  }
};

/// Computes 2^(scale score - log2_sum), and that times (d weight - dot). The results
/// are the weight of a score, and the score's gradient without the factor of scores.
/// Both are 0 where the score is not seen.
__device__ void score_gradient(float& score, float& gradient, bool is_seen, float scale,
                               float log2_sum, float dot) {
  score = is_seen ? exp2f(fmaf(scale, score, -log2_sum)) : 0;
  gradient = is_seen ? score * (gradient - dot) : 0;
}

/// \tparam Part columns of dk and dv that a block computes: as many as registers can
/// hold
template <class Value, int Width, int Part, class Tiles = backward_tiles<Value, Width>>
__global__ void __launch_bounds__(Tiles::threads, Tiles::backward_blocks)
  key_gradients(attention_shape dims, token_matrix qkv, const float* log_sum,
                const float* dots, token_matrix dy, token_matrix dqkv) {
  constexpr int step = Tiles::backward_step;
  static_assert(step <= Tiles::threads); // a thread loads a step's log sum and dot
  TROUPE_DYNAMIC_SHARED(Value, space);
  const tile<Value, Width> keys{space}, values = keys.below(Tiles::rows);
  const block_of_head position{dims, Tiles::rows, false};
  const steps_of_rows<Value, Width, step, Tiles::threads> steps{
    values.below(Tiles::rows),
    {qkv, dims, position.slice, 0},
    {dy, dims, position.slice, 0}};
  const facts_of_steps<step> facts{
    reinterpret_cast<float*>(steps.tiles.row(steps.rows)),
    log_sum + position.slice * dims.length, dots + position.slice * dims.length};
  const head_columns k{qkv, dims, position.slice, 1}, v{qkv, dims, position.slice, 2};
  const int warp_row = static_cast<int>(threadIdx.x) / warp_size * chunk,
            first = position.first + warp_row,
            part = static_cast<int>(blockIdx.y) * Part;
  const float scale = scale_of_scores(k.width);
  strip<Part> key_sums{}, value_sums{};
  const auto add_queries = [&](int query, const auto& seen) {
    const auto queries = steps.first_at(query), upper = steps.second_at(query);
    const float* const step_facts = facts.at(query);
    strip<step> weights{}, gradients{};
    multiply_by_rows(weights, keys.below(warp_row), queries, seen);
    multiply_by_rows(gradients, values.below(warp_row), upper, seen);
    TROUPE_UNROLL
    for (int block = 0; block < step / 8; ++block)
      for (int i = 0; i < 4; ++i) {
        const int column = weights.column(block, i);
        score_gradient(
          weights.values[block][i], gradients.values[block][i],
          seen.has(block / 2, weights.row(i), weights.column(block % 2, i)),
          scale * log2_of_e, step_facts[column] * log2_of_e, step_facts[step + column]);
      }
    multiply(value_sums, weights, upper.from_column(part), seen);
    multiply(key_sums, gradients, queries.from_column(part), seen);
  };
  const auto begin_load = [&](int query) {
    steps.begin_load(query);
    facts.begin_load(query, k.length);
  };
  k.template begin_load<Tiles::rows, Tiles::threads>(keys, position.first);
  v.template begin_load<Tiles::rows, Tiles::threads>(values, position.first);
  go_in_steps<step>(position.first, k.length, begin_load, [&](int query) {
    if (query >= first + chunk && query + step <= k.length)
      add_queries(query, all_columns{});
    else if (query + step > first)
      add_queries(query, queries_of_keys{{(first - query) / chunk}, k.length - query});
  });
  const head_columns dk{dqkv, dims, position.slice, 1},
    dv{dqkv, dims, position.slice, 2};
  dk.store(key_sums, first, part, {scale, scale});
  dv.store(value_sums, first, part, {1, 1});
}

template <class Value, int Width, class Tiles = backward_tiles<Value, Width>>
__global__ void __launch_bounds__(Tiles::threads, Tiles::backward_blocks)
  query_gradients(attention_shape dims, token_matrix qkv, const float* log_sum,
                  const float* dots, token_matrix dy, token_matrix dqkv) {
  constexpr int step = Tiles::backward_step;
  TROUPE_DYNAMIC_SHARED(Value, space);
  const tile<Value, Width> queries{space}, upper = queries.below(Tiles::rows);
  const block_of_head position{dims, Tiles::rows, true};
  const steps_of_rows<Value, Width, step, Tiles::threads> steps{
    upper.below(Tiles::rows),
    {qkv, dims, position.slice, 1},
    {qkv, dims, position.slice, 2}};
  const head_columns q{qkv, dims, position.slice, 0}, dout{dy, dims, position.slice, 0};
  const int warp_row = static_cast<int>(threadIdx.x) / warp_size * chunk,
            first = position.first + warp_row,
            end = position.first + Tiles::rows < q.length ? position.first + Tiles::rows
                                                          : q.length;
  const float scale = scale_of_scores(q.width);
  q.template begin_load<Tiles::rows, Tiles::threads>(queries, position.first);
  dout.template begin_load<Tiles::rows, Tiles::threads>(upper, position.first);
  float log2_sums[2] = {}, row_dots[2] = {};
  for (int half = 0; half < 2; ++half) {
    const int token = first + strip<step>::row(2 * half);
    if (token < q.length) {
      log2_sums[half] = log_sum[position.slice * dims.length + token] * log2_of_e;
      row_dots[half] = dots[position.slice * dims.length + token];
    }
  }
  strip<Width> sums{};
  const auto add_keys = [&](int key, const auto& seen) {
    const auto keys = steps.first_at(key);
    strip<step> weights{}, gradients{};
    multiply_by_rows(weights, queries.below(warp_row), keys, seen);
    multiply_by_rows(gradients, upper.below(warp_row), steps.second_at(key), seen);
    TROUPE_UNROLL
    for (int block = 0; block < step / 8; ++block)
      for (int i = 0; i < 4; ++i)
        score_gradient(
          weights.values[block][i], gradients.values[block][i],
          seen.has(block / 2, weights.row(i), weights.column(block % 2, i)),
          scale * log2_of_e, log2_sums[i / 2], row_dots[i / 2]);
    multiply(sums, gradients, keys, seen);
  };
  go_through_keys(steps, first, end, add_keys);
  const head_columns dq{dqkv, dims, position.slice, 0};
  dq.store(sums, first, 0, {scale, scale});
}

} // namespace

void attention::backward(const attention_shape& dims, input qkv, input y,
                         const float* log_sum, input dy, output dqkv, float* space,
                         stream_handle stream) {
  const auto in = token_matrix_of(dims, qkv), out = token_matrix_of(dims, y),
             upper = token_matrix_of(dims, dy), gradient = token_matrix_of(dims, dqkv);
  const dim3 grid{blocks_of(dims.sequences * dims.heads * dims.length, rows_a_block), 1,
                  1},
    block{rows_a_block * warp_size, 1, 1};
  launch(stream, grid, block, 0,
         out.is_wide && upper.is_wide ? multiply_rows<pack> : multiply_rows<1>, dims,
         out, upper, space);
  by_tile(dims, qkv.is_bf16 && dy.is_bf16, [&](auto value, auto width) {
    using scalar = decltype(value);
    using tiles = backward_tiles<scalar, width>;
    constexpr int part = width < 128 ? width : 128, step = tiles::backward_step;
    constexpr auto shared_bytes = tiles::room(2 * tiles::rows + 4 * step),
                   bytes_with_facts =
                     shared_bytes
                     + std::int64_t{facts_of_steps<step>::floats * sizeof(float)};
    static_assert(bytes_with_facts <= most_room);
    const auto blocks = blocks_of_heads(dims, tiles::rows);
    launch(stream, {blocks, blocks_of(dims.width / dims.heads, part), 1},
           {tiles::threads, 1, 1}, bytes_with_facts, key_gradients<scalar, width, part>,
           dims, in, log_sum, space, upper, gradient);
    launch(stream, {blocks, 1, 1}, {tiles::threads, 1, 1}, shared_bytes,
           query_gradients<scalar, width>, dims, in, log_sum, space, upper, gradient);
  });
}

} // namespace troupe::cuda
