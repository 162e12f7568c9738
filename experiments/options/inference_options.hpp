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
  /// Safetensors file, index of files, folder of weights or of checkpoints, or one
  /// checkpoint.
  std::string weights;
  /// Largest number of held-out samples to evaluate; absent: all.
  std::optional<std::int64_t> samples;
  /// Samples of a microbatch. Absent: enough for fast products with the model, at most
  /// 16 of tokens or 64 images.
  std::optional<std::int64_t> microbatch;
  std::optional<std::string> prompt; ///< Bytes of the prompt; absent: a line break.
  /// Token numbers of the prompt, used in place of `prompt`; empty: `prompt` is used.
  std::vector<std::int32_t> prompt_tokens;
  std::int64_t tokens = 200; ///< Tokens to generate for each sequence.
  double temperature = 0.8;
  /// Number of the most likely tokens from which a token is drawn; 0: all tokens.
  std::int64_t top_k = 0;
  int sequences = 1;
  std::string text_device = "cpu"; ///< Device that generates text; only "cpu" is valid.
};

/// Adds --weights. Parsing writes to `typed`, which must outlive `to`.
void add_weights(option_list& to, inference_options& typed);
/// Adds --samples and --microbatch-size. Parsing writes to `typed`, which must outlive
/// `to`.
void add_scoring(option_list& to, inference_options& typed);

/// Adds the options of programs that generate text.
/// \param typed receives the values of the parsed command line; outlives `to`
/// \param seed receives the seed of the random numbers that draw tokens; outlives `to`
void add_writing(option_list& to, inference_options& typed, std::uint64_t& seed);

/// One sentence with the mistake and the allowed values; empty if the options are
/// valid. `weights` is not checked.
std::string validation_error(const inference_options& o);

} // namespace troupe
