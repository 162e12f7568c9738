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
  /// Whether rows are (T, B, ...), so that neighbouring tokens of all sequences stand
  /// together, not (B, T, ...).
  bool by_position = false;
};

/// Causal self-attention of H heads: y = softmax(q k^T / sqrt(C/H)) v, token t
/// attending to tokens 0..t of its sequence. Vaswani et al., "Attention Is All You
/// Need", 2017. qkv: (B, T, 3, H, C/H), as GPT-2's c_attn makes it; y: (B, T, H, C/H);
/// either with T before B if the shape says so; both as matrices of B T rows.
/// Scores are made anew by the backward, from log_sum: (B, H, T). They never take
/// (B, H, T, T) values: where the kernel of fp32 makes products (fused_attention.hpp,
/// widened_attention.hpp), at most 8192 a thread; else, 32 queries of a head are worked
/// on at once, and two such blocks by the backward, so 128 T.
template <class Scalar>
struct attention {
  /// Values of scratch for a pass on a stream of so many threads and such products.
  static std::int64_t scratch(const attention_shape& dims, int threads,
                              precision products = precision::fp32);

  /// Fills y, and log_sum for the backward. \param space scratch() values
  static void forward(const attention_shape& dims, stored_matrix<const Scalar> qkv,
                      stored_matrix<Scalar> y, Scalar* log_sum, Scalar* space,
                      stream& on);

  /// Fills dqkv. \param y what the forward made
  static void backward(const attention_shape& dims, stored_matrix<const Scalar> qkv,
                       stored_matrix<const Scalar> y, const Scalar* log_sum,
                       stored_matrix<const Scalar> dy, stored_matrix<Scalar> dqkv,
                       Scalar* space, stream& on);
};

} // namespace troupe
