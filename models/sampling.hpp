// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <span>

namespace troupe {

/// The rules for the choice of a text's next token.
struct sampling_options {
  double temperature = 1; ///< Divides logits; 0: the largest logit is chosen.
  std::int64_t top_k = 0; ///< Number of largest logits to choose from; 0: all.
};

/// Returns the index of a token, drawn by softmax(logits / temperature). Among equal
/// logits, the logit of the lower token counts as the larger one.
/// \param random number from [0, 1) that decides the choice
/// \throws std::runtime_error if a logit is not finite
std::int32_t sample(std::span<const float> logits, const sampling_options& options,
                    double random);

} // namespace troupe
