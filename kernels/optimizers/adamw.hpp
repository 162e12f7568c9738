// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "kernels/optimizers/update_arrays.hpp"

#include <cmath>
#include <cstdint>

namespace troupe {

/// AdamW: Loshchilov and Hutter, "Decoupled Weight Decay Regularization", 2019,
/// algorithm 2, with the decay times the rate, as in PyTorch. State: the mean of
/// gradients, and the mean of squares.
struct adamw_update {
  static constexpr int states = 2;

  float beta1, rest1, beta2, rest2;
  float decay;   ///< Factor of the parameter.
  float step;    ///< Rate over the correction of the mean's bias.
  float root;    ///< Corrects the bias of the root of the mean of squares.
  float epsilon; ///< Added to the divisor.

  /// \param number of the update, from 1
  static adamw_update of(double rate, double beta1, double beta2, double epsilon,
                         double weight_decay, std::int64_t number) {
    const auto t = static_cast<double>(number);
    return {static_cast<float>(beta1),
            static_cast<float>(1 - beta1),
            static_cast<float>(beta2),
            static_cast<float>(1 - beta2),
            static_cast<float>(1 - rate * weight_decay),
            static_cast<float>(rate / (1 - std::pow(beta1, t))),
            static_cast<float>(1 / std::sqrt(1 - std::pow(beta2, t))),
            static_cast<float>(epsilon)};
  }

  TROUPE_CPU_AND_GPU float operator()(float gradient, float scale, float from,
                                      float* state) const {
    gradient *= scale;
    state[0] = beta1 * state[0] + rest1 * gradient;
    state[1] = beta2 * state[1] + rest2 * gradient * gradient;
    return from * decay - step * state[0] / (std::sqrt(state[1]) * root + epsilon);
  }
};

} // namespace troupe
