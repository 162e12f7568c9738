#pragma once

#include <cstdint>

namespace troupe {

/// GPT-2's GELU, n values: y = x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))).
/// Hendrycks & Gimpel, "Gaussian Error Linear Units", 2016.
template <class Scalar>
struct gelu {
  /// y may be x.
  static void forward(const Scalar* x, Scalar* y, std::int64_t n);

  /// dx = dy times the derivative at x. dx may be dy.
  static void backward(const Scalar* x, const Scalar* dy, Scalar* dx, std::int64_t n);
};

} // namespace troupe
