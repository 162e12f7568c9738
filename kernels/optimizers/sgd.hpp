// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "kernels/optimizers/update_arrays.hpp"

// PyTorch's SGD. The velocity becomes momentum * velocity + gradient + decay * from,
// and the update is to = from - rate * velocity.

namespace troupe {

/// SGD without momentum.
struct sgd_update {
  static constexpr int states = 0;

  float rate;
  float decay;

  TROUPE_CPU_AND_GPU float operator()(float gradient, float scale, float from,
                                      float*) const {
    return from - rate * (gradient * scale + decay * from);
  }
};

/// SGD with momentum. State: the velocity.
struct momentum_update {
  static constexpr int states = 1;

  float rate;
  float decay;
  float momentum;

  TROUPE_CPU_AND_GPU float operator()(float gradient, float scale, float from,
                                      float* state) const {
    state[0] = momentum * state[0] + (gradient * scale + decay * from);
    return from - rate * state[0];
  }
};

} // namespace troupe
