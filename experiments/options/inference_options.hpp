// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace troupe {

class option_list;

/// Options of programs that run saved weights forwards.
struct inference_options {
  std::string weights;                 ///< Safetensors file, or folder of checkpoints.
  std::optional<std::int64_t> samples; ///< To evaluate; absent: all held out.
  std::optional<std::int64_t> microbatch;  ///< Samples; absent: as suits the model.
  std::optional<std::string> prompt;       ///< Bytes of it; absent: a line break.
  std::vector<std::int32_t> prompt_tokens; ///< In place of that, if there are any.
  std::int64_t tokens = 200;               ///< Behind the prompt.
  double temperature = 0.8;
  std::int64_t top_k = 0; ///< 0: all words.
  int sequences = 1;
  std::string text_device = "cpu"; ///< What writes them; nothing else can.
};

void add_weights(option_list& to, inference_options& place);
void add_scoring(option_list& to, inference_options& place);

/// \param seed of the text
void add_writing(option_list& to, inference_options& place, std::uint64_t& seed);

/// What is wrong, and what is allowed; empty if nothing is.
std::string refusal(const inference_options& o);

} // namespace troupe
