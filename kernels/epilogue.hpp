// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "kernels/stored_matrix.hpp"

#include <cstdint>

namespace troupe {

/// The operations on a product's elements before the elements leave the cache. `s` is
/// the product (M, N), c the array of results, v = s + bias; gelu is the function of
/// vector_math.hpp.
///
///   kind            c =         also writes        use in a layer
///   none            s
///   bias            v                              linear forward
///   bias_gelu       see below   y = gelu(v)        linear forward and GELU
///   bias_relu       max(v, 0)   mask = (c > 0)     linear forward and ReLU
///   bias_residual   v + x                          end of a residual branch
///   gelu_gradient   s gelu'(v)                     input gradient of a GELU: x is
///                                                  the c of bias_gelu
/// The c of bias_gelu is gelu'(v) on the CPU, and v on a GPU, as in cuBLASLt's
/// epilogues. In gelu_gradient, v is the v of the forward's bias_gelu, and s is the
/// product of gradients.
enum class epilogue_kind : std::uint8_t {
  none,
  bias,
  bias_gelu,
  bias_relu,
  bias_residual,
  gelu_gradient,
};

/// Whether an epilogue of this kind adds a bias.
constexpr bool has_bias(epilogue_kind kind) {
  return kind != epilogue_kind::none && kind != epilogue_kind::gelu_gradient;
}

/// Whether an epilogue of this kind reads x.
constexpr bool reads_x(epilogue_kind kind) {
  return kind == epilogue_kind::bias_residual || kind == epilogue_kind::gelu_gradient;
}

/// Name of a kind, for messages: "bias_gelu".
constexpr const char* name_of(epilogue_kind kind) {
  switch (kind) {
  case epilogue_kind::none:
    return "none";
  case epilogue_kind::bias:
    return "bias";
  case epilogue_kind::bias_gelu:
    return "bias_gelu";
  case epilogue_kind::bias_relu:
    return "bias_relu";
  case epilogue_kind::bias_residual:
    return "bias_residual";
  case epilogue_kind::gelu_gradient:
    return "gelu_gradient";
  }
  return "";
}

/// An epilogue: a kind, and arrays that the caller owns. Matrices are (M, N) and not
/// transposed; none may overlap c. Elements are independent of each other, so a split
/// of the product changes no bit.
template <class Scalar>
struct epilogue {
  epilogue_kind kind = epilogue_kind::none;
  const Scalar* bias = nullptr;       ///< (N); for kinds with a bias.
  stored_matrix<const Scalar> x = {}; ///< Residual, or the c of bias_gelu.
  stored_matrix<Scalar> y = {};       ///< Output of bias_gelu.
  matrix<std::uint8_t> mask = {};     ///< Output of bias_relu: 1 where c > 0, else 0.

  /// The epilogue for the part of c that begins at (row, column).
  epilogue from(std::int64_t row, std::int64_t column) const;

  /// Turns s into c, on this thread, in a part of c that begins at (row, column).
  void finish(matrix<Scalar> part, std::int64_t row, std::int64_t column) const;
};

} // namespace troupe
