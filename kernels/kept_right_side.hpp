// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "kernels/stored_matrix.hpp"

namespace troupe {

/// The right side b of products. With memory of the caller in `packed`, a packed copy
/// of b is kept for later products of bf16. On a GPU the copy is b rounded to bf16; a b
/// that is bf16 is used without a copy. A product uses the copy if `*holds` is
/// `version`, so new values need a new version.
template <class Scalar>
struct kept_right_side {
  stored_matrix<const Scalar> b;
  int version = 0;          ///< Version of the values.
  Scalar* packed = nullptr; ///< kept_size() floats that the caller owns; null if each
                            ///< product packs b.
  int* holds = nullptr; ///< The version of the copy in `packed`. The caller owns the
                        ///< number, and a product that packs b sets the number.
};

} // namespace troupe
