// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cuda_runtime.h>

#include <new>
#include <stdexcept>
#include <string>

// Checks of CUDA calls, and the selection of a GPU for a thread.

namespace troupe::cuda {

/// Throws if a CUDA call failed.
/// \param request the verb and object of the call, for the message: "make a stream"
/// \throws std::bad_alloc if memory is short
/// \throws std::runtime_error for other failures
inline void check(cudaError_t state, const char* request) {
  if (state == cudaErrorMemoryAllocation)
    throw std::bad_alloc{};
  if (state != cudaSuccess)
    throw std::runtime_error{std::string{"the GPU cannot "} + request + ": "
                             + cudaGetErrorString(state)};
}

/// Makes a GPU current for the CUDA calls of this thread.
/// \pre other code on this thread makes no GPU current
/// \throws as check() does
inline void use(int gpu) {
  thread_local int used = -1; // a CUDA call before each launch would take too long
  if (used == gpu)
    return;
  used = -1;
  check(cudaSetDevice(gpu), "be used");
  used = gpu;
}

} // namespace troupe::cuda
