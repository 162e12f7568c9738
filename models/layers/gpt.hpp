// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "kernels/stored_matrix.hpp"
#include "models/layer.hpp"

#include <cmath>

namespace troupe {

/// Sizes of a GPT.
struct gpt_shape {
  std::int64_t blocks;     ///< L
  std::int64_t width;      ///< C
  std::int64_t heads;      ///< H, divides C
  std::int64_t length;     ///< T, tokens a sample
  std::int64_t words;      ///< V
  tensor_shard shard = {}; ///< Of each layer; its count divides H, and T by sequence.
  bool tied = false;       ///< The head's matrix is the embedding's.
  /// What layers hand each other and keep. Logits, statistics of norms and of softmax,
  /// and what shards sum are fp32 in any case, and the gate of experts is computed in
  /// it.
  precision stored = precision::fp32;
  /// Positions that `transformer.wpe` knows; 0: as many as a sample has tokens. More
  /// where the sequences of some microbatches are shorter.
  std::int64_t known = 0;

  std::int64_t known_positions() const { return known > 0 ? known : length; }

  /// Positions of a sequence between the halves of blocks.
  std::int64_t positions() const {
    return shard.by_sequence ? shard.part(length) : length;
  }

  /// Standard deviation that matrices begin with.
  static constexpr double deviation = 0.02;

  /// That of c_proj matrices: 2 L of them, one behind another, add to what the last
  /// norm sees.
  double residual_deviation() const {
    return deviation / std::sqrt(2 * static_cast<double>(blocks));
  }

  // Rows that products have, and that a shard has between the halves of blocks.
  std::int64_t rows(std::int64_t samples) const { return samples * length; }
  std::int64_t own_rows(std::int64_t samples) const { return samples * positions(); }

  /// Those rows of an array of all.
  template <class Matrix>
  Matrix own(const Matrix& all) const {
    if (!shard.by_sequence)
      return all;
    return all.row_range(shard.first(all.rows), shard.part(all.rows));
  }
};

// The layers of GPT-2 (Radford et al., "Language Models are Unsupervised Multitask
// Learners", 2019): pre-norm blocks, learned positions, biases, no dropout. Parameters
// have Hugging Face's names and orientation. Matrices begin normal with deviation 0.02,
// c_proj with 0.02 / sqrt(2 L) ("scale the weights of residual layers at initialization
// by a factor of 1/sqrt(N)", section 2.3); biases at 0, gains at 1.
//
// Tensor shards (Shoeybi et al., "Megatron-LM", 2019): each has some heads, some
// columns of c_fc with the rows of c_proj that they meet, and some of the words; what
// is not named here all have. One sum in the forward and one in the input gradient of
// each half of a block.
//
// By sequence (Korthikanti et al., "Reducing Activation Recomputation in Large
// Transformer Models", 2022, section 4.2.2) a shard has only its positions of what lies
// between the products: norms, residuals, and what stages send each other. A gather
// before the products and a scatter behind them take the place of each sum.

/// Tokens (B, T) to activations (B, T, C): `transformer.wte` [V, C] plus
/// `transformer.wpe` [known positions, C], of which it reads the first T.
template <class Scalar>
std::shared_ptr<const layer<Scalar>> embedding_layer(const gpt_shape& dims);

/// The first half of block `number`: y = x + c_proj(attention(c_attn(ln_1(x)))).
template <class Scalar>
std::shared_ptr<const layer<Scalar>> attention_layer(const gpt_shape& dims, int number);

/// The second half of block `number`: y = x + c_proj(gelu(c_fc(ln_2(x)))).
template <class Scalar>
std::shared_ptr<const layer<Scalar>> feed_forward_layer(const gpt_shape& dims,
                                                        int number);

/// The end: logits (B, T, V) = ln_f(x) times `lm_head.weight` [V, C] transposed. Tied,
/// that is a second copy of `transformer.wte.weight`; shards cut both by words.
template <class Scalar>
std::shared_ptr<const layer<Scalar>> head_layer(const gpt_shape& dims);

/// The gradients of a norm's gain and bias, of which each shard has those of its rows.
template <class Scalar>
shard_collective<Scalar> sum_of_norm(const layer<Scalar>& of, std::size_t gain,
                                     std::size_t bias, const frame<Scalar>& f) {
  const auto &first = of.parameters()[gain], &last = of.parameters()[bias];
  return {shard_collective<Scalar>::kind::sum, f.gradients + first.offset,
          last.offset + last.values() - first.offset};
}

} // namespace troupe
