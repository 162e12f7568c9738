// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "tests/kernels/cuda/gpu_array.hpp"
#include "tests/kernels/numbers.hpp"

#include <catch2/catch_test_macros.hpp>

#include <memory>

/// Ends a test whose kernels cannot run here.
#define GPU_OR_SKIP()                                                                  \
  do {                                                                                 \
    if (const auto why = gpu::absent(); !why.empty())                                  \
      SKIP("no GPU: " + why);                                                          \
  } while (false)

namespace gpu {

using results = std::vector<std::vector<float>>;

/// Relative error norms that are allowed, compared with the CPU's kernels in double.
inline constexpr double near_fp32 = 1e-5;
constexpr double near(troupe::precision stored) {
  return stored == troupe::precision::bf16 ? 1e-2 : near_fp32;
}

inline std::vector<double> exact(const std::vector<float>& values) {
  return {values.begin(), values.end()};
}

/// Integers as results.
template <class Integer>
std::vector<float> as_floats(const std::vector<Integer>& values) {
  return {values.begin(), values.end()};
}

/// The array to which gradients are written, or added.
inline std::unique_ptr<array<float>>
sum_of(const std::string& name, const std::vector<float>& before, bool adds) {
  if (adds)
    return std::make_unique<array<float>>(name, before, use::updated);
  return std::make_unique<array<float>>(name, std::ssize(before));
}

} // namespace gpu
