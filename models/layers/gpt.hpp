#pragma once

#include "models/layer.hpp"

namespace troupe {

/// Sizes of a GPT.
struct gpt_shape {
  std::int64_t blocks;     ///< L
  std::int64_t width;      ///< C
  std::int64_t heads;      ///< H, divides C
  std::int64_t length;     ///< T, tokens a sample
  std::int64_t words;      ///< V
  tensor_shard shard = {}; ///< Of each layer; its count divides H.
};

// The layers of GPT-2 (Radford et al., "Language Models are Unsupervised Multitask
// Learners", 2019): pre-norm blocks, learned positions, biases, no dropout. Parameters
// have Hugging Face's names and orientation and begin normal with deviation 0.02,
// biases at 0, gains at 1.
//
// Tensor shards (Shoeybi et al., "Megatron-LM", 2019): each has some heads, some
// columns of c_fc with the rows of c_proj that they meet, and some of the words; what
// is not named here all have. One sum in the forward and one in the input gradient of
// each half of a block.

/// Tokens (B, T) to activations (B, T, C): `transformer.wte` [V, C] plus
/// `transformer.wpe` [T, C].
template <class Scalar>
std::shared_ptr<const layer<Scalar>> embedding_layer(const gpt_shape& dims);

/// The first half of block `number`: y = x + c_proj(attention(c_attn(ln_1(x)))).
template <class Scalar>
std::shared_ptr<const layer<Scalar>> attention_layer(const gpt_shape& dims, int number);

/// The second half of block `number`: y = x + c_proj(gelu(c_fc(ln_2(x)))).
template <class Scalar>
std::shared_ptr<const layer<Scalar>> feed_forward_layer(const gpt_shape& dims,
                                                        int number);

/// The end: logits (B, T, V) = ln_f(x) times `lm_head.weight` [V, C] transposed.
template <class Scalar>
std::shared_ptr<const layer<Scalar>> head_layer(const gpt_shape& dims);

} // namespace troupe
