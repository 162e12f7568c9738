// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "kernels/optimizers/update_arrays.hpp"

#include <cmath>
#include <cstdint>

namespace troupe {

/// NAdam: Dozat, "Incorporating Nesterov Momentum into Adam", 2016, as in PyTorch, with
/// AdamW's decoupled weight decay. State: the mean of gradients, and the mean of
/// squares.
struct nadam_update {
  static constexpr int states = 2;

  float beta1, rest1, beta2, rest2;
  float decay;         ///< Factor of the parameter.
  float gradient_step; ///< Rate times the part of the gradient.
  float mean_step;     ///< Rate times the part of the mean.
  float root;          ///< Corrects the bias of the root of the mean of squares.
  float epsilon;       ///< Added to the divisor.

  /// The momentum of update t is beta1 * (1 - 0.96^(t * momentum_decay) / 2).
  /// \param number of the update, from 1
  static nadam_update of(double rate, double beta1, double beta2, double epsilon,
                         double weight_decay, double momentum_decay,
                         std::int64_t number) {
    const auto momentum_of = [&](std::int64_t t) {
      return beta1
             * (1 - 0.5 * std::pow(0.96, static_cast<double>(t) * momentum_decay));
    };
    // The product of all momenta up to this update. A product below 1e-20 changes no
    // bit of the steps.
    const double shrinking = std::pow(0.96, momentum_decay);
    double product = 1, power = 1;
    for (std::int64_t t = 1; t <= number && product > 1e-20; ++t) {
      power *= shrinking;
      product *= beta1 * (1 - 0.5 * power);
    }
    const double momentum = momentum_of(number), next = momentum_of(number + 1);
    const auto t = static_cast<double>(number);
    return {static_cast<float>(beta1),
            static_cast<float>(1 - beta1),
            static_cast<float>(beta2),
            static_cast<float>(1 - beta2),
            static_cast<float>(1 - rate * weight_decay),
            static_cast<float>(rate * (1 - momentum) / (1 - product)),
            static_cast<float>(rate * next / (1 - product * next)),
            static_cast<float>(1 / std::sqrt(1 - std::pow(beta2, t))),
            static_cast<float>(epsilon)};
  }

  TROUPE_CPU_AND_GPU float operator()(float gradient, float scale, float from,
                                      float* state) const {
    gradient *= scale;
    state[0] = beta1 * state[0] + rest1 * gradient;
    state[1] = beta2 * state[1] + rest2 * gradient * gradient;
    return from * decay
           - (gradient_step * gradient + mean_step * state[0])
               / (std::sqrt(state[1]) * root + epsilon);
  }
};

} // namespace troupe
