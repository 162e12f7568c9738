// SPDX-License-Identifier: BSD-3-Clause
// Asynchronous copies from global to shared memory while a block computes, inside a
// .cu. PTX ISA, "cp.async".
#pragma once

#include "kernels/cuda/source.hpp"

#ifndef __CUDACC__
#include "kernels/cuda/on_host/async_copy.hpp"
#endif

namespace troupe::cuda {

/// Starts to copy 4 or 16 bytes, aligned to that size. `to` may be written at any time
/// until this thread's wait_for_copies() has returned. Other threads may read `to`
/// after a barrier that follows wait_for_copies().
/// \param is_there if false, zeros are written, and nothing is read
template <int Bytes>
__device__ void begin_copy(void* to, const void* from, bool is_there) {
  static_assert(Bytes == 4 || Bytes == 16);
#ifdef __CUDA_ARCH__
  const auto place = static_cast<unsigned>(__cvta_generic_to_shared(to));
  const int bytes = is_there ? Bytes : 0;
  if constexpr (Bytes == 16) // bypasses the first cache, which would gain nothing
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(place),
                 "l"(from), "r"(bytes)
                 : "memory");
  else
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(place), "l"(from),
                 "r"(bytes)
                 : "memory");
#elif !defined(__CUDACC__)
  on_host::begin_copy(to, from, Bytes, is_there);
#endif
}

/// Waits until all copies started by this thread have ended.
__device__ inline void wait_for_copies() {
#ifdef __CUDA_ARCH__
  asm volatile("cp.async.wait_all;" ::: "memory");
#elif !defined(__CUDACC__)
  on_host::wait_for_copies();
#endif
}

} // namespace troupe::cuda
