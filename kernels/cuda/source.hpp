// SPDX-License-Identifier: BSD-3-Clause
// The first include of each .cu. nvcc compiles a .cu for a GPU. A C++ compiler compiles
// the same source for tests, with CUDA's names implemented on fibres (on_host/). A
// block's threads take turns on one thread of this machine.
#pragma once

#ifdef __CUDACC__
#include "kernels/cuda/on_device/words.hpp"
#else
#include "kernels/cuda/on_host/words.hpp"
#endif
