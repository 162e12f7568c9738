// SPDX-License-Identifier: BSD-3-Clause
// CUDA's words for kernels, as nvcc has them, and the few that on_host/ needs besides.
#pragma once

#include "kernels/cuda/launch_list.hpp"

#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>

/// A loop over registers: on a GPU they have no index.
#define TROUPE_UNROLL _Pragma("unroll")

/// An array in shared memory: TROUPE_SHARED(float, part, [2][8]);
#define TROUPE_SHARED(type, name, dims) __shared__ __align__(16) type name dims

/// The shared memory that the launch asked for, of a kernel that has no other.
#define TROUPE_DYNAMIC_SHARED(type, name)                                              \
  extern __shared__ __align__(16) unsigned char dynamic_shared_bytes[];                \
  type* const name = reinterpret_cast<type*>(dynamic_shared_bytes)

namespace troupe::cuda {

namespace on_device {

template <class... Parameters>
void launch(cudaStream_t on, dim3 grid, dim3 block, std::int64_t dynamic_shared,
            void (*kernel)(Parameters...), Parameters... arguments) {
  constexpr std::int64_t without_asking = 48 * 1024;
  auto state = cudaSuccess;
  cudaGetLastError(); // of a call before, which has been told
  if (dynamic_shared > without_asking)
    state = cudaFuncSetAttribute(reinterpret_cast<const void*>(kernel),
                                 cudaFuncAttributeMaxDynamicSharedMemorySize,
                                 static_cast<int>(dynamic_shared));
  if (state == cudaSuccess) {
    kernel<<<grid, block, static_cast<std::size_t>(dynamic_shared), on>>>(arguments...);
    state = cudaGetLastError();
  }
  if (state != cudaSuccess)
    throw std::runtime_error{std::string{"the GPU cannot run a kernel: "}
                             + cudaGetErrorString(state)};
}

} // namespace on_device

/// \param grid blocks \param block threads of each \param dynamic_shared bytes of a
/// block \throws std::runtime_error if it cannot be launched
template <class... Parameters, class... Arguments>
void launch(cudaStream_t on, dim3 grid, dim3 block, std::int64_t dynamic_shared,
            void (*kernel)(Parameters...), Arguments... arguments) {
  if (auto* const list = deferred_on(on))
    return list->add(
      [=] {
        on_device::launch(on, grid, block, dynamic_shared, kernel,
                          static_cast<Parameters>(arguments)...);
      },
      grid.x, grid.y, grid.z, block.x, block.y, block.z, dynamic_shared, kernel,
      static_cast<Parameters>(arguments)...);
  on_device::launch(on, grid, block, dynamic_shared, kernel,
                    static_cast<Parameters>(arguments)...);
}

} // namespace troupe::cuda
