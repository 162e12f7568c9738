#pragma once

#include "kernels/matrix.hpp"
#include "kernels/team.hpp"

namespace troupe {

/// What follows a linear layer's product; y and x are (R, C), the bias is (C).
template <class Scalar>
struct bias {
  /// y += bias, row by row.
  static void add(matrix<Scalar> y, const Scalar* bias);

  /// y += bias + x: the end of a residual branch.
  static void add_with_residual(matrix<Scalar> y, const Scalar* bias,
                                matrix<const Scalar> x);

  /// dbias = beta dbias + the sum of dy's rows; beta is 0 or 1.
  static void gradient(matrix<const Scalar> dy, Scalar beta, Scalar* dbias,
                       team& threads);
};

} // namespace troupe
