// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cuda_runtime.h>

#include <new>
#include <stdexcept>
#include <string>

namespace troupe::cuda {

/// \param what the GPU was asked to do \throws std::bad_alloc, std::runtime_error if it
/// cannot
inline void check(cudaError_t state, const char* what) {
  if (state == cudaErrorMemoryAllocation)
    throw std::bad_alloc{};
  if (state != cudaSuccess)
    throw std::runtime_error{std::string{"the GPU cannot "} + what + ": "
                             + cudaGetErrorString(state)};
}

/// What this thread calls from now on is about that GPU. \throws as check() does
inline void use(int gpu) {
  thread_local int used = -1; // asking CUDA for each of a work's launches takes long
  if (used == gpu)
    return;
  used = -1;
  check(cudaSetDevice(gpu), "be used");
  used = gpu;
}

} // namespace troupe::cuda
