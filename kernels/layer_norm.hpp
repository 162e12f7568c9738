// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "kernels/stored_matrix.hpp"
#include "kernels/stream.hpp"

namespace troupe {

/// Layer normalisation of rows: y = (x - mean) * rstd * gain + bias, where rstd = 1 /
/// sqrt(variance + 1e-5). Ba et al., "Layer Normalization", 2016. x, y, dx and dy: (R,
/// C), not transposed; gain and bias: (C); mean and rstd: (R).
template <class Scalar>
struct layer_norm {
  /// Fills y, and mean and rstd for the backward.
  static void forward(stored_matrix<const Scalar> x, const Scalar* gain,
                      const Scalar* bias, stored_matrix<Scalar> y, Scalar* mean,
                      Scalar* rstd, stream& stream);

  /// dx = the gradient through the norm, plus dresidual unless its data is null. dx may
  /// be dy or dresidual.
  static void input_gradient(stored_matrix<const Scalar> x, const Scalar* gain,
                             const Scalar* mean, const Scalar* rstd,
                             stored_matrix<const Scalar> dy,
                             stored_matrix<const Scalar> dresidual,
                             stored_matrix<Scalar> dx, stream& stream);

  /// dgain = beta dgain + the sum over rows of dy * (x - mean) * rstd, and dbias = beta
  /// dbias + the sum over rows of dy. beta is 0 or 1. On the CPU rows are added in
  /// order.
  static void weight_gradient(stored_matrix<const Scalar> x, const Scalar* mean,
                              const Scalar* rstd, stored_matrix<const Scalar> dy,
                              Scalar beta, Scalar* dgain, Scalar* dbias,
                              stream& stream);
};

} // namespace troupe
