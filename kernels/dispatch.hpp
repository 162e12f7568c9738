// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "kernels/top_k_gate.hpp"

namespace troupe {

/// Copies rows to experts, and combines the outputs. x, y, dx, dy: (R, C); rows, drows:
/// (M, C) for M sent rows, indexed by the table's `positions`.
template <class Scalar>
struct dispatch {
  /// Copies each row of x to the row's positions in `rows`.
  static void send(const gate_table<Scalar>& table, matrix<const Scalar> x,
                   Scalar* rows, stream& stream);

  /// y += the weighted outputs of the experts, `rows`, in the order of a row's choices.
  static void combine(const gate_table<Scalar>& table, const Scalar* rows,
                      matrix<Scalar> y, stream& stream);

  /// Fills drows, the gradients of the outputs, and dweights (R, k), the gradients of
  /// the weights: 0 for a dropped choice.
  static void combine_gradient(const gate_table<Scalar>& table, const Scalar* rows,
                               matrix<const Scalar> dy, Scalar* drows, Scalar* dweights,
                               stream& stream);

  /// dx += the gradients that the experts send back, in the order of a row's choices.
  static void send_gradient(const gate_table<Scalar>& table, const Scalar* drows,
                            matrix<Scalar> dx, stream& stream);
};

} // namespace troupe
