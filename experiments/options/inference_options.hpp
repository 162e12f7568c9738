// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace troupe {

class option_list;

/// Options of programs that compute only forwards, of saved weights.
struct inference_options {
  std::string weights;                 ///< Safetensors file, or folder of checkpoints.
  std::optional<std::int64_t> samples; ///< To evaluate; absent: all held-out samples.
  /// Samples of a microbatch; absent: as many as suit the model.
  std::optional<std::int64_t> microbatch;
  std::optional<std::string> prompt; ///< Bytes of the prompt; absent: a line break.
  /// Used in place of `prompt`, if there are any.
  std::vector<std::int32_t> prompt_tokens;
  std::int64_t tokens = 200; ///< Tokens to generate after the prompt.
  double temperature = 0.8;
  std::int64_t top_k = 0; ///< Tokens to draw from; 0: all.
  int sequences = 1;
  std::string text_device = "cpu"; ///< Device that generates text; only the CPU can.
};

void add_weights(option_list& to, inference_options& typed);
void add_scoring(option_list& to, inference_options& typed);

/// \param seed of the random numbers that draw tokens
void add_writing(option_list& to, inference_options& typed, std::uint64_t& seed);

/// One sentence with the mistake and the allowed values; empty if the options are
/// valid.
std::string validation_error(const inference_options& o);

} // namespace troupe
