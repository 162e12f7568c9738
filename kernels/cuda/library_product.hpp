// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "kernels/epilogue.hpp"

namespace troupe::cuda {

/// A product as a stream's library runs it. The library computes the sum s = a b + beta
/// c in fp32, applies an epilogue, and rounds once to the type of c. Factors a and b
/// have one type, and are read transposed if the view says so. With beta 0, c may hold
/// anything.
struct library_product {
  stored_matrix<const float> a, b;
  float beta = 0;
  stored_matrix<float> c; ///< (M, N): fp32; or bf16, if a is bf16 and beta is 0.
  bool tf32 = false;      ///< Whether operands of fp32 are rounded to 11 bits.
  /// An epilogue of kernels/epilogue.hpp other than bias_relu. For kinds other than
  /// none, c and the x and y of the kind are bf16.
  epilogue_kind end = epilogue_kind::none;
  const bf16* bias = nullptr;        ///< (N); for kinds with a bias.
  stored_matrix<const float> x = {}; ///< Residual, or the c of bias_gelu.
  stored_matrix<float> y = {};       ///< Output of bias_gelu.
};

} // namespace troupe::cuda
