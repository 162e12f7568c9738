#pragma once

#include "kernels/matrix.hpp"
#include "kernels/stream.hpp"

namespace troupe {

/// GPT-2's GELU, a value each: y = x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))).
/// Hendrycks & Gimpel, "Gaussian Error Linear Units", 2016. All matrices are (R, C) and
/// not transposed. Behind a product it is an epilogue.
template <class Scalar>
struct gelu {
  /// y may be x.
  static void forward(matrix<const Scalar> x, matrix<Scalar> y, stream& on);

  /// dx = dy times the derivative at x. dx may be dy.
  static void backward(matrix<const Scalar> x, matrix<const Scalar> dy,
                       matrix<Scalar> dx, stream& on);
};

} // namespace troupe
