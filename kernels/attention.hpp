// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "kernels/stored_matrix.hpp"
#include "kernels/stream.hpp"

#include <cstdint>

namespace troupe {

/// Sizes of one attention: B sequences of T tokens, H heads, C = H * (width of a head).
struct attention_shape {
  std::int64_t sequences; ///< B
  std::int64_t length;    ///< T
  std::int64_t heads;     ///< H
  std::int64_t width;     ///< C
  /// True if rows are (T, B, ...): the tokens of all sequences at one position are
  /// adjacent. Otherwise rows are (B, T, ...).
  bool by_position = false;
};

/// Causal self-attention of H heads: y = softmax(q k^T / sqrt(C/H)) v, token t
/// attending to tokens 0..t of the same sequence. Vaswani et al., "Attention Is All You
/// Need", 2017. qkv: (B, T, 3, H, C/H), the layout of GPT-2's c_attn; y: (B, T, H,
/// C/H). Both arrays are matrices of B T rows; with `by_position`, T comes before B.
///
/// The backward recomputes scores from log_sum: (B, H, T). Scores never take (B, H, T,
/// T) values. On a GPU scores stay in registers and shared memory. On the CPU,
/// fused_attention and widened_attention hold at most 8192 scores and gradients of
/// scores per thread. The former has fp32 products of fp32 matrices, the latter bf16
/// products on the path `widen`. Otherwise the forward holds scores of 32 queries of a
/// head, and the backward holds scores and gradients of 64 queries: at most 128 T
/// values per thread.
template <class Scalar>
struct attention {
  /// Number of values of scratch memory for a forward or a backward on a stream of
  /// `threads` threads, with operands of precision `products`.
  static std::int64_t scratch(const attention_shape& dims, int threads,
                              precision products = precision::fp32);

  /// Fills y, and log_sum for the backward.
  /// \param space scratch memory of scratch() values for the stream's threads and
  /// products; unused on a GPU
  static void forward(const attention_shape& dims, stored_matrix<const Scalar> qkv,
                      stored_matrix<Scalar> y, Scalar* log_sum, Scalar* space,
                      stream& stream);

  /// Fills dqkv.
  /// \param y,log_sum the outputs of the forward
  /// \param space as for forward()
  static void backward(const attention_shape& dims, stored_matrix<const Scalar> qkv,
                       stored_matrix<const Scalar> y, const Scalar* log_sum,
                       stored_matrix<const Scalar> dy, stored_matrix<Scalar> dqkv,
                       Scalar* space, stream& stream);
};

} // namespace troupe
