// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// The options that choose a network and the network's sizes.

#include "kernels/precision.hpp"

#include <cstdint>
#include <string>

namespace troupe {

/// Options of layers with experts: the number of experts, and the gate's choice.
struct expert_options {
  int count = 8; ///< Number of experts of a layer (n).
  /// Experts of each token (k): 1 as in Switch, 2 as in GShard.
  int chosen = 1;
  double capacity = 1.25; ///< Most rows of an expert, relative to an even share.
  double balance = 0.01;  ///< Weight of the load-balancing loss.
  double noise = 0; ///< Standard deviation of noise that is added to the gate's logits.
  bool shared = false;    ///< One more expert, which receives all tokens.
  std::uint64_t seed = 1; ///< Seed of the noise.

  /// Largest number of rows that an expert takes of a training's microbatch with `rows`
  /// rows: rounded up, and at most `rows`. In an evaluation an expert takes all rows,
  /// so that an evaluation does not depend on the batch.
  std::int64_t capacity_of(std::int64_t rows) const;
};

/// The network and the network's sizes. A model ignores sizes that do not apply to the
/// model. For every model make_network() checks the ranges of layers, width, heads,
/// length and words. The ranges of `experts` are checked only for moe.
struct model_options {
  std::string model = "gpt";
  std::int64_t layers = 4;     ///< gpt, moe: blocks; mlp: linear layers.
  std::int64_t width = 128;    ///< gpt, moe: d_model; mlp: hidden units.
  std::int64_t heads = 4;      ///< gpt, moe: attention heads; divides the width.
  std::int64_t length = 64;    ///< gpt, moe: tokens a sample.
  std::int64_t words = 256;    ///< gpt, moe: size of the vocabulary.
  expert_options experts = {}; ///< Options of moe.
  bool tied = false; ///< gpt, moe: the head's matrix is the embedding's, as GPT-2's.
  precision stored = precision::fp32; ///< Precision of activations and kept values.
};

/// The names of the models: "gpt, lenet, lenet5, mlp, moe".
std::string model_names();

} // namespace troupe
