// Sums over the rows of a matrix, inside a .cu.
#pragma once

#include "kernels/cuda/stored.hpp"
#include "kernels/cuda/warp.hpp"

#include <cstdint>

namespace troupe::cuda {

inline constexpr int row_groups = 16; // of a block that sums columns: a warp each

/// to[s][c] = beta to[s][c] + the sum over rows of what terms.at(row, c, add) sets
/// add[s] to. A warp sums every row_groups-th row, a thread a column; the first warp
/// then adds those groups in order.
template <int Sums, class Terms>
__global__ void __launch_bounds__(row_groups* warp_size)
  sum_columns(std::int64_t rows, std::int64_t columns, Terms terms, float beta) {
  TROUPE_SHARED(float, groups, [row_groups][Sums][warp_size]);
  const int lane = threadIdx.x % warp_size, group = threadIdx.x / warp_size;
  const auto c = std::int64_t{blockIdx.x} * warp_size + lane;
  float sums[Sums] = {}, add[Sums];
  for (std::int64_t row = group; row < rows && c < columns; row += row_groups) {
    terms.at(row, c, add);
    for (int s = 0; s < Sums; ++s)
      sums[s] += add[s];
  }
  for (int s = 0; s < Sums; ++s)
    groups[group][s][lane] = sums[s];
  __syncthreads();
  if (group > 0 || c >= columns)
    return;
  for (int s = 0; s < Sums; ++s) {
    for (int other = 1; other < row_groups; ++other)
      sums[s] += groups[other][s][lane];
    float* const to = terms.to[s];
    to[c] = sums[s] + (beta == 0 ? 0 : beta * to[c]);
  }
}

template <int Sums, class Terms>
void launch_column_sums(cudaStream_t on, std::int64_t rows, std::int64_t columns,
                        const Terms& terms, float beta) {
  launch(on, {blocks_of(columns, warp_size), 1, 1}, {row_groups * warp_size, 1, 1}, 0,
         sum_columns<Sums, Terms>, rows, columns, terms, beta);
}

} // namespace troupe::cuda
