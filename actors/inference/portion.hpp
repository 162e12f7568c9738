// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "kernels/buffer.hpp"
#include "kernels/cross_entropy.hpp"

#include <cstdint>

namespace troupe {

/// What passes through the stages of an inference as one: a microbatch of held-out
/// samples, or the next tokens of one sequence.
struct portion {
  std::int64_t number = 0; ///< Of the microbatch, or of the sequence.
  std::int64_t samples = 1;
  std::int64_t length = 0; ///< Tokens of each sample; 0: all that the network takes.
  std::int64_t past = 0;   ///< Tokens of the sequence that stages have read before.
  /// For the first stage tokens or pixels, for others activations; from the last one
  /// logits of what comes next, or nothing if there are labels.
  buffer values = {};
  buffer labels = {}; ///< Of an evaluation.
  loss_sum loss = {}; ///< Of an evaluation, from the last stage.
};

} // namespace troupe
