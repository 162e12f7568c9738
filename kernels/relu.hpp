#pragma once

#include "kernels/matrix.hpp"

namespace troupe {

/// Rectified linear units.
template <class Scalar>
struct relu {
  /// y = max(y, 0) in place, mask = (y > 0).
  static void forward(matrix<Scalar> y, matrix<std::uint8_t> mask);

  /// dx = dy where the mask is set, else 0. dx may be dy.
  static void backward(matrix<const Scalar> dy, matrix<const std::uint8_t> mask,
                       matrix<Scalar> dx);
};

} // namespace troupe
