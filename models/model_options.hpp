// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "kernels/precision.hpp"

#include <cstdint>
#include <string>

namespace troupe {

/// How many experts a layer has, and how its gate chooses.
struct expert_options {
  int count = 8;          ///< n
  int chosen = 1;         ///< k, experts a token; 1 is Switch's, 2 GShard's.
  double capacity = 1.25; ///< Of an expert, over its even share of a microbatch.
  double balance = 0.01;  ///< Weight of the load-balancing loss.
  double noise = 0;       ///< Standard deviation, added to the gate's logits.
  bool shared = false;    ///< One more expert, which all tokens have.
  std::uint64_t seed = 1; ///< Of the noise.

  /// Rows that an expert takes of `rows` of a microbatch, rounded up. In an evaluation
  /// it takes all, so that what is evaluated does not depend on the batch.
  std::int64_t capacity_of(std::int64_t rows) const;
};

/// Which network, and its sizes. A model ignores the sizes it does not have.
struct model_options {
  std::string model = "gpt";
  std::int64_t layers = 4;  ///< gpt: blocks; mlp: linear layers.
  std::int64_t width = 128; ///< gpt: d_model; mlp: hidden units.
  std::int64_t heads = 4;
  std::int64_t length = 64;    ///< Tokens a sample.
  std::int64_t words = 256;    ///< Vocabulary.
  expert_options experts = {}; ///< Of moe.
  bool tied = false; ///< gpt, moe: the head's matrix is the embedding's, as GPT-2's.
  precision stored = precision::fp32; ///< What layers hand each other and keep.
};

/// The names of the models: "gpt, lenet, lenet5, mlp, moe".
std::string model_names();

} // namespace troupe
