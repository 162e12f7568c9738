// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "kernels/matrix.hpp"
#include "kernels/precision.hpp"

#include <cstdint>

namespace troupe {

/// The matrices of one head of one sequence, (T, C/H) each.
template <class Scalar>
struct head_matrices {
  matrix<Scalar> q, k, v;
};

/// One head's attention by products of the fp32 kernel, on this thread. Scores are
/// computed a block of keys and queries at a time, and used while in the cache: no
/// product packs scores. Dao et al., "FlashAttention", 2022. Products multiply some
/// masked tokens by 0: values of up to 7 later tokens. The backward also multiplies
/// keys of up to 7 later tokens, and q and dy of up to 7 earlier tokens. An infinity or
/// a NaN in such a token therefore reaches results up to 7 tokens away.
/// \param score_precision bf16: weights and gradients of scores are rounded to bf16 for
/// products. The forward's weights are relative to the largest score so far, and sums
/// add the unrounded weights.
struct fused_attention {
  /// Number of values of scratch memory for a forward or a backward over heads of
  /// (length, size).
  static std::int64_t scratch(std::int64_t length, std::int64_t size);

  /// Fills y and log_sum, (T). The outer loop is over queries.
  /// \param space scratch memory of scratch() values
  static void forward(const head_matrices<const float>& in, matrix<float> y,
                      float* log_sum, float* space,
                      precision score_precision = precision::fp32);

  /// Fills the gradients. The outer loop is over keys: gradients of a block of keys are
  /// summed in the cache, gradients of queries in `space`.
  /// \param space scratch memory of scratch() values
  static void backward(const head_matrices<const float>& in, matrix<const float> y,
                       const float* log_sum, matrix<const float> dy,
                       const head_matrices<float>& gradient, float* space,
                       precision score_precision = precision::fp32);

private:
  static std::int64_t forward_scratch(std::int64_t length, std::int64_t size);
  static std::int64_t backward_scratch(std::int64_t length, std::int64_t size);
};

} // namespace troupe
