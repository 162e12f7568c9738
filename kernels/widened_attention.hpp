// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "kernels/stored_matrix.hpp"

#include <cstdint>

namespace troupe {

/// One head's attention where the fp32 kernel computes products of bf16
/// (bf16_path::widen), on this thread: fused_attention of the widened operands. All
/// operands of products that are stored as fp32 are rounded to bf16: q, k, v, dy, and
/// weights and gradients of scores. Results that are stored as bf16 are rounded once.
/// Matrices are (T, C/H).
struct widened_attention {
  template <class Scalar>
  struct head {
    stored_matrix<Scalar> q, k, v;
  };

  /// Number of values of scratch memory for a forward or a backward over heads of
  /// (length, size).
  static std::int64_t scratch(std::int64_t length, std::int64_t size);

  /// Fills y and log_sum, (T).
  /// \param space scratch memory of scratch() values
  static void forward(const head<const float>& in, stored_matrix<float> y,
                      float* log_sum, float* space);

  /// Fills the gradients.
  /// \param space scratch memory of scratch() values
  static void backward(const head<const float>& in, stored_matrix<const float> y,
                       const float* log_sum, stored_matrix<const float> dy,
                       const head<float>& gradient, float* space);
};

} // namespace troupe
