// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// The shape and the layers of a GPT.

#include "kernels/stored_matrix.hpp"
#include "models/layer.hpp"

#include <cmath>

namespace troupe {

/// Sizes of a GPT.
struct gpt_shape {
  std::int64_t blocks; ///< L
  std::int64_t width;  ///< C
  std::int64_t heads;  ///< H, divides C
  std::int64_t length; ///< T, tokens a sample
  std::int64_t words;  ///< V
  /// Shard of each layer. The number of shards divides H; with `by_sequence`, also T.
  tensor_shard shard = {};
  bool tied = false; ///< The head's matrix is the embedding's.
  /// Precision of activations between layers and of kept values. Logits, statistics of
  /// norms and of softmax, and sums over shards are fp32 in any case. The gate of
  /// experts is computed in fp32.
  precision stored = precision::fp32;
  /// Positions (rows) that `transformer.wpe` has; 0: `length` positions. Above `length`
  /// in a network for shorter sequences (of_length).
  std::int64_t known = 0;

  std::int64_t known_positions() const { return known > 0 ? known : length; }

  /// Positions of a sequence that a shard has between the halves of blocks.
  std::int64_t positions() const {
    return shard.by_sequence ? shard.part(length) : length;
  }

  /// Standard deviation of the initial values of matrices, except c_proj.
  static constexpr double deviation = 0.02;

  /// Standard deviation of the initial values of c_proj matrices. 2 L of these
  /// matrices, one after another, add to the input of the last norm.
  double residual_deviation() const {
    return deviation / std::sqrt(2 * static_cast<double>(blocks));
  }

  // Numbers of rows of `samples` samples. The products of a block have rows(), with all
  // positions. The arrays between the attention half and the feed-forward half have
  // local_rows(), with the positions of this shard.
  std::int64_t rows(std::int64_t samples) const { return samples * length; }
  std::int64_t local_rows(std::int64_t samples) const { return samples * positions(); }

  /// The rows of the shard's positions in an array of all rows; all rows unless shards
  /// divide positions. The result refers to the memory of `whole`.
  template <class Matrix>
  Matrix local_part(const Matrix& whole) const {
    if (!shard.by_sequence)
      return whole;
    return whole.row_range(shard.first(whole.rows), shard.part(whole.rows));
  }
};

// The layers of GPT-2 (Radford et al., "Language Models are Unsupervised Multitask
// Learners", 2019): pre-norm blocks, learned positions, biases, no dropout. Parameters
// have Hugging Face's names and orientation. Matrices begin normal with deviation 0.02,
// c_proj with 0.02 / sqrt(2 L); biases begin at 0, gains at 1. The paper, section 2.3:
// "scale the weights of residual layers at initialization by a factor of 1/sqrt(N)".
//
// Tensor shards (Shoeybi et al., "Megatron-LM", 2019). Each shard has some heads, some
// columns of c_fc with the matching rows of c_proj, and some rows of the vocabulary.
// All shards hold every other parameter whole. Each half of a block has one sum in the
// forward and one in the input gradient.
//
// By sequence (Korthikanti et al., "Reducing Activation Recomputation in Large
// Transformer Models", 2022, section 4.2.2). Between the products a shard has only the
// shard's own positions: of norms, of residuals, and of messages between stages. A
// gather before the products and a scatter after the products take the place of each
// sum.

/// Tokens (B, T) to activations (B, T, C): `transformer.wte` [V, C] plus
/// `transformer.wpe` [known positions, C]. Only the first T positions are read.
template <class Scalar>
std::shared_ptr<const layer<Scalar>> embedding_layer(const gpt_shape& dims);

/// The first half of block `number`: y = x + c_proj(attention(c_attn(ln_1(x)))).
template <class Scalar>
std::shared_ptr<const layer<Scalar>> attention_layer(const gpt_shape& dims, int number);

/// The second half of block `number`: y = x + c_proj(gelu(c_fc(ln_2(x)))).
template <class Scalar>
std::shared_ptr<const layer<Scalar>> feed_forward_layer(const gpt_shape& dims,
                                                        int number);

/// The end: logits (B, T, V) = ln_f(x) times `lm_head.weight` [V, C] transposed. If
/// tied, the matrix is a second copy of `transformer.wte.weight`. A shard has the same
/// words of both copies.
template <class Scalar>
std::shared_ptr<const layer<Scalar>> head_layer(const gpt_shape& dims);

/// Returns the collective that sums the gradients of a norm's gain and bias over
/// shards. Before the sum, each shard has the gradients of the shard's own rows.
template <class Scalar>
shard_collective<Scalar> sum_of_norm(const layer<Scalar>& norm_layer, std::size_t gain,
                                     std::size_t bias, const frame<Scalar>& f) {
  const auto &first = norm_layer.parameters()[gain],
             &last = norm_layer.parameters()[bias];
  return {shard_collective<Scalar>::kind::sum, f.gradients + first.offset,
          last.offset + last.values() - first.offset};
}

} // namespace troupe
