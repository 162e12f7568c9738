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
  /// Tokens of the sequence whose keys and values stages have; 0: stages begin anew.
  std::int64_t past = 0;
  /// The input of the first stage: tokens or pixels. The input of other stages:
  /// activations. The last stage's result: logits of the next token, or nothing if
  /// there are labels.
  buffer values = {};
  buffer labels = {}; ///< Labels; only in an evaluation.
  loss_sum loss = {}; ///< Loss from the last stage; only in an evaluation.
};

} // namespace troupe
