// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <span>

namespace troupe {

/// How the next token of a text is chosen.
struct sampling_options {
  double temperature = 1; ///< Divides logits; 0: the largest logit is chosen.
  std::int64_t top_k = 0; ///< Only so many of the largest are chosen from; 0: all.
};

/// A token by softmax(logits / temperature). Of equal logits the lower token counts as
/// the larger one. \param random from [0, 1), which the choice is a function of
/// \throws std::runtime_error if a logit is not finite
std::int32_t sample(std::span<const float> logits, const sampling_options& how,
                    double random);

} // namespace troupe
