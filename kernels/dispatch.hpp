// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "kernels/top_k_gate.hpp"

namespace troupe {

/// Rows on their way to experts, and back. x, y, dx, dy: (R, C); rows: (M, C), of which
/// a table's places speak.
template <class Scalar>
struct dispatch {
  /// Copies rows of x to their places.
  static void send(const gate_table<Scalar>& by, matrix<const Scalar> x, Scalar* rows,
                   stream& on);

  /// y += the weighted outputs of the experts, in the order of a row's choices.
  static void combine(const gate_table<Scalar>& by, const Scalar* rows,
                      matrix<Scalar> y, stream& on);

  /// Gradients of the outputs, and of the weights (R, k).
  static void combine_gradient(const gate_table<Scalar>& by, const Scalar* rows,
                               matrix<const Scalar> dy, Scalar* drows, Scalar* dweights,
                               stream& on);

  /// dx += the gradients that come back from the experts, in that order.
  static void send_gradient(const gate_table<Scalar>& by, const Scalar* drows,
                            matrix<Scalar> dx, stream& on);
};

} // namespace troupe
