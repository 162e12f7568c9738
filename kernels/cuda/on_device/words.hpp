// SPDX-License-Identifier: BSD-3-Clause
// CUDA's names for kernels under nvcc, and a few macros that hide the differences to
// on_host/.
#pragma once

#include "kernels/cuda/launch_list.hpp"

#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>

/// Unrolls a loop over registers, which have no index on a GPU.
#define TROUPE_UNROLL _Pragma("unroll")

/// Declares an array in shared memory: TROUPE_SHARED(float, part, [2][8]);
#define TROUPE_SHARED(type, name, dims) __shared__ __align__(16) type name dims

/// Declares the dynamic shared memory of the launch, once in a kernel.
#define TROUPE_DYNAMIC_SHARED(type, name)                                              \
  extern __shared__ __align__(16) unsigned char dynamic_shared_bytes[];                \
  type* const name = reinterpret_cast<type*>(dynamic_shared_bytes)

namespace troupe::cuda {

namespace on_device {

template <class... Parameters>
void launch(cudaStream_t stream, dim3 grid, dim3 block, std::int64_t dynamic_shared,
            void (*kernel)(Parameters...), Parameters... arguments) {
  constexpr std::int64_t without_asking = 48 * 1024;
  auto state = cudaSuccess;
  cudaGetLastError(); // an earlier call's error, already reported
  if (dynamic_shared > without_asking)
    state = cudaFuncSetAttribute(reinterpret_cast<const void*>(kernel),
                                 cudaFuncAttributeMaxDynamicSharedMemorySize,
                                 static_cast<int>(dynamic_shared));
  if (state == cudaSuccess) {
    kernel<<<grid, block, static_cast<std::size_t>(dynamic_shared), stream>>>(
      arguments...);
    state = cudaGetLastError();
  }
  if (state != cudaSuccess)
    throw std::runtime_error{std::string{"the GPU cannot run a kernel: "}
                             + cudaGetErrorString(state)};
}

} // namespace on_device

/// Launches a kernel, or adds the launch to the thread's deferred list.
/// \param grid number of blocks
/// \param block number of threads of each block
/// \param dynamic_shared bytes of dynamic shared memory of each block
/// \throws std::runtime_error if the launch fails and is not deferred
template <class... Parameters, class... Arguments>
void launch(cudaStream_t stream, dim3 grid, dim3 block, std::int64_t dynamic_shared,
            void (*kernel)(Parameters...), Arguments... arguments) {
  const auto run = [=] {
    on_device::launch(stream, grid, block, dynamic_shared, kernel,
                      static_cast<Parameters>(arguments)...);
  };
  launch_or_defer(stream, run);
}

} // namespace troupe::cuda
