// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "kernels/buffer.hpp"
#include "kernels/cross_entropy.hpp"

#include <cstdint>

namespace troupe {

/// The unit that passes through the stages of an inference: a microbatch of held-out
/// samples, or the next tokens of one sequence.
struct portion {
  std::int64_t number = 0; ///< Index of the microbatch, or of the sequence.
  std::int64_t samples = 1;
  std::int64_t length = 0; ///< Tokens of each sample; 0: the network's full length.
  /// Number of earlier tokens of the sequence whose keys and values are in the stages'
  /// caches; 0: the sequence starts with this portion.
  std::int64_t past = 0;
  /// The input of the first stage: tokens or pixels. The input of other stages:
  /// activations. The last stage's result: logits of the next token; empty in an
  /// evaluation.
  buffer values = {};
  buffer labels = {}; ///< Only in an evaluation, up to the last stage's result.
  loss_sum loss = {}; ///< Loss from the last stage; only in an evaluation.
};

} // namespace troupe
