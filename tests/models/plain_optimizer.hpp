// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "models/optimizer.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <stdexcept>
#include <vector>

/// Optimizers written from the papers, in double and one value at a time. The
/// definitions use only the numbers in `optimizer_options` of the project.
namespace plain {

using troupe::optimizer_options;

/// The learning rate of an update that covers samples [first, last) of `total`. The
/// rate rises with the samples covered by the update's end. Then the rate falls along
/// half a cosine (Loshchilov & Hutter, "SGDR", 2017, equation 5) with the samples
/// before the update.
inline double rate_of(const optimizer_options& o, double first, double last,
                      double total) {
  const auto warmup = static_cast<double>(o.schedule.warmup);
  if (last <= warmup)
    return o.rate * last / warmup;
  if (!o.schedule.cosine)
    return o.rate;
  const double lowest = o.rate * o.schedule.floor;
  const double passed = std::max(first - warmup, 0.0) / (total - warmup);
  return lowest + 0.5 * (o.rate - lowest) * (1 + std::cos(passed * std::numbers::pi));
}

/// The factor for a gradient of this norm (Pascanu et al., "On the Difficulty of
/// Training Recurrent Neural Networks", 2013, algorithm 1), with PyTorch's 1e-6.
inline double clipping_of(double limit, double norm) {
  return limit > 0 && norm + 1e-6 > limit ? limit / (norm + 1e-6) : 1;
}

/// One value of a parameter, and the optimizer's state for that value.
struct weight {
  double value = 0;
  double mean = 0;    ///< AdamW's first moment; SGD's velocity.
  double square = 0;  ///< AdamW's second moment.
  double beta1_t = 1; ///< beta1 to the power of the updates so far
  double beta2_t = 1; ///< beta2 likewise
  double mu_t = 1;    ///< NAdam's product of momenta so far
  int updates = 0;

  /// \param g the gradient, a mean over samples and clipped
  /// \param decays whether weight decay applies to this parameter
  void update(const optimizer_options& o, double rate, double g, bool decays) {
    const double decay = decays ? o.weight_decay : 0;
    if (o.name == "adamw")
      adamw(o, rate, g, decay);
    else if (o.name == "nadam")
      nadam(o, rate, g, decay);
    else if (o.name == "sgd")
      sgd(o, rate, g, decay);
    else
      throw std::logic_error("no definition of " + o.name);
  }

private:
  // Loshchilov & Hutter, "Decoupled Weight Decay Regularization", 2019, algorithm 2.
  // PyTorch multiplies the decay with the rate.
  void adamw(const optimizer_options& o, double rate, double g, double decay) {
    beta1_t *= o.beta1;
    beta2_t *= o.beta2;
    mean = o.beta1 * mean + (1 - o.beta1) * g;
    square = o.beta2 * square + (1 - o.beta2) * g * g;
    const double m = mean / (1 - beta1_t), v = square / (1 - beta2_t);
    value -= rate * (m / (std::sqrt(v) + o.epsilon) + decay * value);
  }

  // torch.optim.NAdam with decoupled_weight_decay, after Dozat, "Incorporating Nesterov
  // Momentum into Adam", 2016, algorithm 8.
  void nadam(const optimizer_options& o, double rate, double g, double decay) {
    const auto psi = o.parameters.find("momentum_decay");
    const auto mu = [&](int t) {
      return o.beta1
             * (1
                - std::pow(0.96, t * (psi != o.parameters.end() ? psi->second : 0.004))
                    / 2);
    };
    ++updates;
    mu_t *= mu(updates);
    beta2_t *= o.beta2;
    mean = o.beta1 * mean + (1 - o.beta1) * g;
    square = o.beta2 * square + (1 - o.beta2) * g * g;
    const double m = mu(updates + 1) * mean / (1 - mu_t * mu(updates + 1))
                     + (1 - mu(updates)) * g / (1 - mu_t);
    const double v = square / (1 - beta2_t);
    value -= rate * (m / (std::sqrt(v) + o.epsilon) + decay * value);
  }

  // torch.optim.SGD: decay is a part of the gradient; the rate is outside the velocity.
  void sgd(const optimizer_options& o, double rate, double g, double decay) {
    mean = o.momentum * mean + g + decay * value;
    value -= rate * mean;
  }
};

} // namespace plain
