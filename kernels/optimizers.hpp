// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "kernels/stream.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace troupe {

/// One update of n parameters: `to` becomes what `from` and the gradient make of it;
/// `to` may be `from`. `scale` turns the summed gradient into the one to apply: 1 /
/// samples, times the factor of clipping.

/// PyTorch's AdamW. Loshchilov & Hutter, "Decoupled Weight Decay Regularization", 2019.
struct adamw_step {
  double rate;
  double beta1;
  double beta2;
  double epsilon;
  double weight_decay;
  std::int64_t number; ///< Of this update, from 1: corrects the moments' bias.
};

/// \param mean,square the moments: (n) each, updated in place; zero before the first
void adamw(const adamw_step& how, float scale, const float* gradient, const float* from,
           float* to, float* mean, float* square, std::int64_t n, stream& on);

/// PyTorch's SGD with momentum: the velocity is momentum * velocity + gradient.
struct sgd_step {
  double rate;
  double momentum;
  double weight_decay;
};

/// \param velocity (n), updated in place, zero before the first; not used, and may be
///        null, without momentum
void sgd(const sgd_step& how, float scale, const float* gradient, const float* from,
         float* to, float* velocity, std::int64_t n, stream& on);

/// The sum of each array's squares, in double, one after another. Waits for them.
std::vector<double> sums_of_squares(const std::vector<std::span<const float>>& arrays,
                                    stream& on);

} // namespace troupe
