// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "kernels/epilogue.hpp"

namespace troupe::cuda {

/// A product as a stream's library runs it. The sum s = a b + beta c is computed in
/// fp32. An epilogue and one rounding to the type of c follow. a and b have one type,
/// and are read transposed if the view says so. With beta 0, c may hold anything.
struct library_product {
  stored_matrix<const float> a, b;
  float beta = 0;
  stored_matrix<float> c; ///< (M, N): fp32; or bf16, if a is bf16 and beta is 0.
  bool tf32 = false;      ///< Whether operands of fp32 are rounded to 11 bits.
  /// An epilogue of kernels/epilogue.hpp other than bias_relu. Kinds other than none
  /// need c, x and y of bf16.
  epilogue_kind end = epilogue_kind::none;
  const bf16* bias = nullptr;        ///< (N); for kinds with a bias.
  stored_matrix<const float> x = {}; ///< As the epilogue's.
  stored_matrix<float> y = {};       ///< As the epilogue's.
};

} // namespace troupe::cuda
