// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "kernels/stored_matrix.hpp"
#include "kernels/stream.hpp"

namespace troupe {

/// The operations on a linear layer's bias outside of a product; inside a product the
/// bias is an epilogue. All matrices are (R, C) and not transposed, the bias is (C).
template <class Scalar>
struct bias {
  /// y = (product + bias) + x: the end of a residual branch whose product was summed
  /// over tensor shards. y may be the product.
  static void add_with_residual(matrix<const Scalar> product, const Scalar* bias,
                                stored_matrix<const Scalar> x, stored_matrix<Scalar> y,
                                stream& stream);

  /// dbias = beta dbias + the sum of dy's rows, on the CPU in the order of rows; beta
  /// is 0 or 1.
  static void gradient(stored_matrix<const Scalar> dy, Scalar beta, Scalar* dbias,
                       stream& stream);
};

} // namespace troupe
