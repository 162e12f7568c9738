// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "kernels/stored_matrix.hpp"

namespace troupe {

/// A right side that stays packed from product to product of bf16, where it has room.
template <class Scalar>
struct kept_right_side {
  stored_matrix<const Scalar> b;
  int version = 0;          ///< Of its values.
  Scalar* packed = nullptr; ///< kept_room() of b; null: b is packed for each product.
  int* holds = nullptr;     ///< The version that is packed there.
};

} // namespace troupe
