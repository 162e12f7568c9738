// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "kernels/stream.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace troupe {

// adamw() and sgd() make one update of n parameters: compute `to` from the old values
// `from` and the summed gradient. `to` may be `from`. `scale` is a factor of the
// gradient: 1 / samples, times the factor of clipping.

/// PyTorch's AdamW. Loshchilov & Hutter, "Decoupled Weight Decay Regularization", 2019.
struct adamw_step {
  double rate;
  double beta1;
  double beta2;
  double epsilon;
  double weight_decay;
  std::int64_t number; ///< Number of this update, from 1: corrects the moments' bias.
};

/// Makes one update by AdamW.
/// \param mean,square the moments: (n) each, updated in place; zero before the first
/// update
void adamw(const adamw_step& update, float scale, const float* gradient,
           const float* from, float* to, float* mean, float* square, std::int64_t n,
           stream& stream);

/// PyTorch's SGD with momentum. In terms of the arguments of sgd(), the velocity
/// becomes momentum * velocity + scale * gradient + weight_decay * from. The update is
/// to = from - rate * velocity.
struct sgd_step {
  double rate;
  double momentum;
  double weight_decay;
};

/// Makes one update by SGD.
/// \param velocity (n), updated in place, zero before the first update; unused without
/// momentum, and may then be null
void sgd(const sgd_step& update, float scale, const float* gradient, const float* from,
         float* to, float* velocity, std::int64_t n, stream& stream);

/// Returns the sum of each array's squares, in double, on the CPU in index order. On a
/// GPU, waits for the stream.
/// \throws std::runtime_error if a kernel of a GPU failed
std::vector<double> sums_of_squares(const std::vector<std::span<const float>>& arrays,
                                    stream& stream);

} // namespace troupe
