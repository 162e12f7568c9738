// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "kernels/stored_matrix.hpp"
#include "kernels/stream.hpp"

#include <cstdint>

namespace troupe {

/// Sizes of one ReLU and pooling: P planes of H by W values.
struct relu_pool_shape {
  std::int64_t planes, height, width;
};

/// ReLU and then the maximum of each 2 by 2 square, of P planes H by W; H and W are
/// even. Shapes: x: (P, H, W); y and choice: (P, H/2, W/2), as matrices (P H/2, W/2).
template <class Scalar>
struct relu_pool {
  using shape = relu_pool_shape;

  /// Fills y. Sets `choice` to the index of the largest pixel of each square: 0..3, or
  /// 4 if no pixel is above 0. Of equal pixels the first counts, row by row. A NaN is
  /// not above 0, and does not propagate.
  static void forward(const shape& dims, const Scalar* x, stored_matrix<Scalar> y,
                      std::uint8_t* choice, stream& stream);

  /// Fills dx: dy at the chosen pixel of each square, and 0 at all other pixels.
  static void backward(const shape& dims, stored_matrix<const Scalar> dy,
                       const std::uint8_t* choice, Scalar* dx, stream& stream);
};

} // namespace troupe
