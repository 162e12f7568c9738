// SPDX-License-Identifier: BSD-3-Clause
// CUDA's names for kernels, implemented on fibres.
#pragma once

#include "kernels/cuda/launch_list.hpp"
#include "kernels/cuda/on_host/block.hpp"
#include "kernels/cuda/on_host/stream_queue.hpp"

#include <cuda_bf16.h>

#include <cmath>
#include <cstdint>
#include <type_traits>
#include <utility>

#undef __global__
#undef __device__
#undef __host__
#undef __forceinline__
#undef __launch_bounds__
#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __launch_bounds__(...)

#define threadIdx (troupe::on_host::thread_index())
#define blockIdx (troupe::on_host::block_index())
#define blockDim (troupe::on_host::block_size())
#define gridDim (troupe::on_host::grid_size())

/// Unrolls a loop over registers, which have no index on a GPU. Empty here.
#define TROUPE_UNROLL

/// Declares an array in shared memory: TROUPE_SHARED(float, part, [2][8]);
#define TROUPE_SHARED(type, name, dims)                                                \
  using name##_array = type dims;                                                      \
  static const char name##_place = 0;                                                  \
  auto& name = *static_cast<name##_array*>(troupe::on_host::shared_array(              \
    #name, &name##_place, sizeof(name##_array), sizeof(type)))

/// Declares the dynamic shared memory of the launch, once in a kernel.
#define TROUPE_DYNAMIC_SHARED(type, name)                                              \
  auto* const name =                                                                   \
    static_cast<type*>(troupe::on_host::dynamic_shared(#name, sizeof(type)))

inline void __syncthreads() {
  troupe::on_host::sync_block();
}

// Warps are always whole here.

inline void __syncwarp(unsigned = ~0U) {
  troupe::on_host::sync_warp();
}

template <class Value>
Value __shfl_sync(unsigned, Value value, int source) {
  return troupe::on_host::from_lane(static_cast<unsigned>(source), value);
}

template <class Value>
Value __shfl_xor_sync(unsigned, Value value, int mask) {
  return troupe::on_host::from_lane(
    troupe::on_host::lane() ^ static_cast<unsigned>(mask), value);
}

inline unsigned __ballot_sync(unsigned, bool holds) {
  return troupe::on_host::ballot_in_warp(holds);
}

inline int __popc(unsigned bits) {
  return __builtin_popcount(bits);
}

inline float __fmul_rn(float a, float b) {
  return a * b;
}

inline int __ffs(int bits) {
  return __builtin_ffs(bits);
}

inline int atomicAdd(int* to, int value) {
  return troupe::on_host::add_atomically(to, value);
}

using cudaStream_t = CUstream_st*;

namespace troupe::cuda {

using dim3 = on_host::index3;

/// Launches a kernel, or adds the launch to the thread's deferred list.
/// \param stream of the launch; null if the kernel runs immediately on this thread
/// \param grid number of blocks
/// \param block number of threads of each block
/// \param dynamic_shared bytes of dynamic shared memory of each block
/// \throws kernel_error if the stream is null, and the kernel has an error
template <class... Parameters, class... Arguments>
void launch(cudaStream_t stream, dim3 grid, dim3 block, std::int64_t dynamic_shared,
            void (*kernel)(Parameters...), Arguments... arguments) {
  // Arguments are copied without hooks: only accesses of the kernel are watched.
  const auto call = [=]() __attribute__((no_sanitize_thread)) {
    kernel(static_cast<Parameters>(arguments)...);
  };
  const auto run = [=]() __attribute__((no_sanitize_thread)) {
    on_host::run_kernel(
      {grid, block, dynamic_shared},
      [](const void* call_data) __attribute__((no_sanitize_thread)) {
        (*static_cast<const decltype(call)*>(call_data))();
      },
      &call);
  };
  const auto enqueue = [=] { stream->enqueue(run); };
  if (auto* const list = deferred_on(stream))
    list->add(enqueue);
  else if (stream == nullptr)
    run();
  else
    enqueue();
}

} // namespace troupe::cuda
