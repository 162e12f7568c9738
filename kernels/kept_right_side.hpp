// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "kernels/stored_matrix.hpp"

namespace troupe {

/// A right side that stays packed from product to product of bf16, if the caller
/// provides memory for the copy.
template <class Scalar>
struct kept_right_side {
  stored_matrix<const Scalar> b;
  int version = 0;          ///< Version of the values.
  Scalar* packed = nullptr; ///< kept_size() floats of the caller's; null: b is packed
                            ///< for each product.
  int* holds = nullptr;     ///< The version whose packed copy is in `packed`.
};

} // namespace troupe
