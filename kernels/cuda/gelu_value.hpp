// SPDX-License-Identifier: BSD-3-Clause
// The value and the slope of GELU, inside a .cu.
#pragma once

#include "kernels/cuda/source.hpp"

namespace troupe::cuda {

struct gelu_value {
  float value, slope;
};

/// The formula of vector_math.hpp: x (1 + tanh(u)) / 2 = x / (1 + e^(-2u)), with one
/// exponential. For x above 16 or below -16, the limits of the formula.
__device__ inline gelu_value gelu_at(float x) {
  constexpr float twice_root = 1.5957691216057308F, cubic = 0.044715F; // 2 sqrt(2/pi)
  if (x > 16 || x < -16) // where the formula overflows, too
    return {x > 0 ? x : 0, x > 0 ? 1.0F : 0.0F};
  const float square = x * x;
  const float gate = 1 / (1 + expf(-(twice_root * x * (1 + cubic * square))));
  const float inner = twice_root * x * (1 + 3 * cubic * square);
  return {x * gate, gate * (1 + inner * (1 - gate))};
}

} // namespace troupe::cuda
