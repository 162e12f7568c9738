// SPDX-License-Identifier: BSD-3-Clause
// Sums and maxima over the threads of a warp or a block, inside a .cu. All results have
// the same bits in any order of execution.
#pragma once

#include "kernels/cuda/source.hpp"

#include <cstdint>

namespace troupe::cuda {

inline constexpr int warp_size = 32;
inline constexpr unsigned whole_warp = 0xffffffffU;

// Sizes for kernels in which a warp processes one row:

inline constexpr int warps_a_block = 4;
inline constexpr unsigned block_threads = warps_a_block * warp_size;

/// Index of the row that this warp processes.
__device__ inline std::int64_t own_row() {
  return std::int64_t{blockIdx.x} * warps_a_block + threadIdx.x / warp_size;
}

/// Returns the sum over the warp to every thread.
__device__ inline float sum_over_warp(float value) {
  for (int apart = warp_size / 2; apart > 0; apart /= 2)
    value += __shfl_xor_sync(whole_warp, value, apart);
  return value;
}

__device__ inline double sum_over_warp(double value) {
  for (int apart = warp_size / 2; apart > 0; apart /= 2)
    value += __shfl_xor_sync(whole_warp, value, apart);
  return value;
}

/// Returns the maximum over the warp to every thread; NaN if any thread has a NaN.
__device__ inline float max_over_warp(float value) {
  for (int apart = warp_size / 2; apart > 0; apart /= 2) {
    const float other_value = __shfl_xor_sync(whole_warp, value, apart);
    value = other_value > value || other_value != other_value ? other_value : value;
  }
  return value;
}

/// Returns the sum over the block to every thread. The sums of warps, each by
/// sum_over_warp(), are added in order.
/// \param space one value per warp, in shared memory; may be reused after the next
/// barrier
template <class Value>
__device__ Value sum_over_block(Value value, Value* space) {
  value = sum_over_warp(value);
  if (threadIdx.x % warp_size == 0)
    space[threadIdx.x / warp_size] = value;
  __syncthreads();
  Value sum = 0;
  for (unsigned w = 0; w < blockDim.x / warp_size; ++w)
    sum += space[w];
  return sum;
}

/// Returns the maximum over the block to every thread; NaN if any thread has a NaN.
/// \param space as for sum_over_block()
__device__ inline float max_over_block(float value, float* space) {
  value = max_over_warp(value);
  if (threadIdx.x % warp_size == 0)
    space[threadIdx.x / warp_size] = value;
  __syncthreads();
  value = space[0];
  for (unsigned w = 1; w < blockDim.x / warp_size; ++w)
    value = space[w] > value || space[w] != space[w] ? space[w] : value;
  return value;
}

} // namespace troupe::cuda
