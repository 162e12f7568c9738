// SPDX-License-Identifier: BSD-3-Clause
// What each .cu includes first. nvcc compiles it for a GPU. A C++ compiler compiles the
// same source against the same words on fibres, for tests: a block's threads take turns
// on one thread of this machine (on_host/).
#pragma once

#ifdef __CUDACC__
#include "kernels/cuda/on_device/words.hpp"
#else
#include "kernels/cuda/on_host/words.hpp"
#endif
