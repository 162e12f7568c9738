// SPDX-License-Identifier: BSD-3-Clause
// Token and position embeddings on a GPU: one warp per row. For gradients, the warp of
// the first row with a token sums all rows with that token, in order. So no sum needs
// atomics.

#include "kernels/cuda/elementwise.hpp"
#include "kernels/cuda/kernels.hpp"
#include "kernels/cuda/source.hpp"
#include "kernels/cuda/stored.hpp"
#include "kernels/cuda/warp.hpp"
#include "kernels/embedding.hpp"

namespace troupe::cuda {

namespace {

constexpr int tokens_at_once = 4; // that a thread compares
constexpr int rows_at_once = 4;   // that a thread loads before adding

/// The words of a tensor shard: a range of the vocabulary.
struct word_range {
  std::int64_t first, count;

  /// Row of a token in the shard's words; -1 if another shard has the token.
  __device__ std::int64_t row_of(std::int32_t token) const {
    const auto row = token - first;
    return row >= 0 && row < count ? row : -1;
  }
};

template <int N>
__global__ void embed(word_range range, const std::int32_t* tokens, stored words,
                      stored positions, std::int64_t sequences, std::int64_t length,
                      bool by_position, stored y, int width) { // B, T, C
  const auto row = own_row();
  if (row >= sequences * length)
    return;
  const auto word = range.row_of(tokens[row]);
  const auto position = by_position ? row / sequences : row % length;
  float values[N], offset[N];
  for (int c = threadIdx.x % warp_size * N; c < width; c += warp_size * N) {
    for (int i = 0; i < N; ++i)
      values[i] = offset[i] = 0;
    if (word >= 0)
      words.load(word, c, values);
    if (positions.data != nullptr)
      positions.load(position, c, offset);
    for (int i = 0; i < N; ++i)
      values[i] += offset[i];
    y.store(row, c, values);
  }
}

/// Whether an earlier row has the token of this row.
__device__ bool stood_before(const std::int32_t* tokens, std::int64_t row) {
  const int lane = threadIdx.x % warp_size;
  const auto token = tokens[row];
  for (std::int64_t begin = 0; begin < row; begin += tokens_at_once * warp_size) {
    bool same = false;
    for (int i = 0; i < tokens_at_once; ++i) {
      const auto earlier = begin + i * warp_size + lane;
      same |= earlier < row && tokens[earlier] == token;
    }
    if (__ballot_sync(whole_warp, same) != 0)
      return true;
  }
  return false;
}

/// A bit for each of the 32 rows from `begin` on: whether the row has the token.
__device__ unsigned rows_with(std::int32_t token, const std::int32_t* tokens,
                              std::int64_t begin, std::int64_t rows) {
  const auto row = begin + threadIdx.x % warp_size;
  return __ballot_sync(whole_warp, row < rows && tokens[row] == token);
}

/// A warp sums some columns over the rows of one token.
template <int N>
__global__ void word_gradients(word_range range, const std::int32_t* tokens, stored dy,
                               stored dwords, std::int64_t rows, int width) {
  const auto row = own_row();
  if (row >= rows)
    return;
  const auto token = tokens[row];
  const auto word = range.row_of(token);
  if (word < 0 || stood_before(tokens, row))
    return;
  const int c = (blockIdx.y * warp_size + threadIdx.x % warp_size) * N;
  float sum[N] = {};
  if (c < width)
    dwords.load(word, c, sum);
  for (auto begin = row; begin < rows; begin += warp_size) {
    auto bits = rows_with(token, tokens, begin, rows);
    while (bits != 0) {
      float upper[rows_at_once][N];
      for (int j = 0; j < rows_at_once; ++j) {
        for (int i = 0; i < N; ++i)
          upper[j][i] = 0;
        if (bits != 0 && c < width)
          dy.load(begin + __ffs(static_cast<int>(bits)) - 1, c, upper[j]);
        bits &= bits - 1;
      }
      for (int j = 0; j < rows_at_once; ++j)
        for (int i = 0; i < N; ++i)
          sum[i] += upper[j][i];
    }
  }
  if (c < width)
    dwords.store(word, c, sum);
}

/// A warp sums some columns over the rows of one position.
template <int N>
__global__ void place_gradients(stored dy, float beta, stored dplaces,
                                std::int64_t sequences, std::int64_t length,
                                bool by_position, int width) {
  const auto position = own_row();
  const int c = (blockIdx.y * warp_size + threadIdx.x % warp_size) * N;
  if (position >= length || c >= width)
    return;
  float sum[N] = {}, upper[N];
  if (beta != 0)
    dplaces.load(position, c, sum);
  for (std::int64_t b = 0; b < sequences; ++b) {
    dy.load(by_position ? position * sequences + b : b * length + position, c, upper);
    for (int i = 0; i < N; ++i)
      sum[i] += upper[i];
  }
  dplaces.store(position, c, sum);
}

struct take_token {
  const std::int32_t* from;
  std::int32_t* to;

  template <int>
  __device__ void run(std::int64_t, std::int64_t i) const {
    to[i] = from[i];
  }
};

stored gradient_of(float* array, std::int64_t width) {
  return {array, width, false};
}

} // namespace

void embedding::forward(const shape& dims, const std::int32_t* tokens, input words,
                        input positions, output y, stream_handle stream) {
  by_pack(
    [&](auto n) {
      launch(stream, {blocks_of(dims.sequences * dims.length, warps_a_block), 1, 1},
             {block_threads, 1, 1}, 0, embed<n>,
             word_range{dims.first_word, dims.words}, tokens, stored_of(words),
             stored_of(positions), dims.sequences, dims.length, dims.by_position,
             stored_of(y), static_cast<int>(dims.width));
    },
    words, positions, y);
}

void embedding::take(const std::int32_t* tokens, std::int64_t n, std::int32_t* to,
                     stream_handle stream) {
  for_each_value(stream, 1, n, take_token{tokens, to});
}

void embedding::gradient(const shape& dims, const std::int32_t* tokens, input dy,
                         float beta, float* dwords, float* dplaces,
                         stream_handle stream) {
  const auto rows = dims.sequences * dims.length;
  const auto width = static_cast<int>(dims.width);
  if (beta == 0)
    arrays::clear(dims.words * dims.width, dwords, stream);
  by_pack(
    [&](auto n) {
      const auto slabs = blocks_of(width, warp_size * n);
      launch(stream, {blocks_of(rows, warps_a_block), slabs, 1}, {block_threads, 1, 1},
             0, word_gradients<n>, word_range{dims.first_word, dims.words}, tokens,
             stored_of(dy), gradient_of(dwords, dims.width), rows, width);
      if (dplaces != nullptr)
        launch(stream, {blocks_of(dims.length, warps_a_block), slabs, 1},
               {block_threads, 1, 1}, 0, place_gradients<n>, stored_of(dy), beta,
               gradient_of(dplaces, dims.width), dims.sequences, dims.length,
               dims.by_position, width);
    },
    dy, dwords, dplaces);
}

} // namespace troupe::cuda
