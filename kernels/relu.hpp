// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "kernels/stored_matrix.hpp"
#include "kernels/stream.hpp"

namespace troupe {

/// The gradient of rectified linear units; the forward is an epilogue.
template <class Scalar>
struct relu {
  /// dx = dy where the mask is set, else 0. All matrices are (R, C) and not transposed;
  /// dx may be dy.
  static void backward(stored_matrix<const Scalar> dy, matrix<const std::uint8_t> mask,
                       stored_matrix<Scalar> dx, stream& stream);
};

} // namespace troupe
