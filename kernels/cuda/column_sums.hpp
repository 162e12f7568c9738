// SPDX-License-Identifier: BSD-3-Clause
// Sums over the rows of a matrix, for each column, inside a .cu.
#pragma once

#include "kernels/cuda/kernels.hpp"
#include "kernels/cuda/stored.hpp"
#include "kernels/cuda/warp.hpp"

#include <cstdint>

namespace troupe::cuda {

// Sizes of a block that sums columns. 64 columns of bf16 fill 128 bytes, a line of the
// cache. A warp covers whole rows, so blocks of single values have fewer columns.
template <int N>
inline constexpr int columns_a_block = N == 1 ? 16 : 64;
inline constexpr int column_sum_warps = 16;
inline constexpr int column_sum_threads = 128; // of a block that adds parts
inline constexpr int rows_under_way = 4; // loaded by a thread before the first is added

/// Where sums are stored: (C) for each sum.
template <int Sums>
struct sum_arrays {
  float* to[Sums];
};

/// Sums the terms of column_sums::rows_a_part rows: part blockIdx.y of all rows.
///   to[s][c] = beta to[s][c] + the sum over rows of terms for sums[s], for one part;
///   space[part][s][c] = the sum over rows of terms for sums[s], for several.
///
/// The function terms.load(row, c) loads the bits of a row, and terms.add(bits, sums)
/// adds terms to sums. A thread sums N columns of every `rows_at_once`-th row. A warp
/// then adds the sums of threads, and the block adds the sums of warps in order.
template <int Sums, int N, class Terms>
__global__ void __launch_bounds__(column_sum_warps* warp_size)
  sum_columns(std::int64_t rows, std::int64_t columns, Terms terms,
              sum_arrays<Sums> arrays, float beta, float* space) {
  TROUPE_SHARED(float, groups, [column_sum_warps][Sums][columns_a_block<N>]);
  constexpr int across = columns_a_block<N> / N,
                rows_at_once = column_sum_warps * warp_size / across;
  const int thread = static_cast<int>(threadIdx.x), thread_column = thread % across * N;
  const auto first = std::int64_t{blockIdx.x} * columns_a_block<N>,
             c = first + thread_column;
  const auto first_row = blockIdx.y * column_sums::rows_a_part,
             last_row = first_row + column_sums::rows_a_part < rows
                          ? first_row + column_sums::rows_a_part
                          : rows;
  float sums[Sums][N] = {};
  for (std::int64_t row = first_row + thread / across; row < last_row && c < columns;
       row += rows_under_way * rows_at_once) {
    typename Terms::template bits<N> bits[rows_under_way];
    TROUPE_UNROLL
    for (int i = 0; i < rows_under_way; ++i) { // no branch: loads a valid row again
      const auto next = row + i * rows_at_once;
      bits[i] = terms.template load<N>(next < last_row ? next : row, c);
    }
    TROUPE_UNROLL
    for (int i = 0; i < rows_under_way; ++i)
      if (row + i * rows_at_once < last_row)
        terms.add(bits[i], sums);
  }
  TROUPE_UNROLL
  for (int s = 0; s < Sums; ++s)
    for (int i = 0; i < N; ++i) {
      for (int apart = across; apart < warp_size; apart *= 2)
        sums[s][i] += __shfl_xor_sync(whole_warp, sums[s][i], apart);
      if (thread % warp_size < across)
        groups[thread / warp_size][s][thread_column + i] = sums[s][i];
    }
  __syncthreads();
  if (thread >= columns_a_block<N> || first + thread >= columns)
    return;
  for (int s = 0; s < Sums; ++s) {
    float sum = 0;
    for (int warp = 0; warp < column_sum_warps; ++warp)
      sum += groups[warp][s][thread];
    if (gridDim.y > 1) {
      space[(blockIdx.y * Sums + s) * columns + first + thread] = sum;
      continue;
    }
    float* const to = arrays.to[s] + first + thread;
    *to = sum + (beta == 0 ? 0 : beta * *to);
  }
}

/// to[s][c] = beta to[s][c] + the sum of space[part][s][c] over parts, one thread per
/// value.
template <int Sums>
__global__ void __launch_bounds__(column_sum_threads)
  add_parts(std::int64_t columns, std::int64_t parts, const float* space,
            sum_arrays<Sums> arrays, float beta) {
  const auto i = std::int64_t{blockIdx.x} * column_sum_threads + threadIdx.x;
  if (i >= Sums * columns)
    return;
  float sum = 0;
  for (std::int64_t part = 0; part < parts; ++part)
    sum += space[part * Sums * columns + i];
  for (int s = 0; s < Sums; ++s) // arrays has no index on a GPU
    if (i / columns == s) {
      float* const to = arrays.to[s] + i % columns;
      *to = sum + (beta == 0 ? 0 : beta * *to);
    }
}

/// Launches sum_columns() for all columns, and then add_parts() if the rows are several
/// parts.
/// \param space scratch memory of column_sums::space() values
/// \param matrices loads are of packs if all matrices are wide, else of single values
template <int Sums, class Terms, class... Matrices>
void launch_column_sums(cudaStream_t stream, std::int64_t rows, std::int64_t columns,
                        const Terms& terms, const sum_arrays<Sums>& arrays, float beta,
                        float* space, const Matrices&... matrices) {
  const auto parts = column_sums::parts(rows);
  by_pack(
    [&](auto n) {
      launch(stream,
             {blocks_of(columns, columns_a_block<n>),
              parts > 1 ? static_cast<unsigned>(parts) : 1, 1},
             {column_sum_warps * warp_size, 1, 1}, 0, sum_columns<Sums, n, Terms>, rows,
             columns, terms, arrays, beta, space);
    },
    matrices...);
  if (parts > 1)
    launch(stream, {blocks_of(Sums * columns, column_sum_threads), 1, 1},
           {column_sum_threads, 1, 1}, 0, add_parts<Sums>, columns, parts, space,
           arrays, beta);
}

} // namespace troupe::cuda
