// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace troupe {

/// The interval and the number of samples of a run's evaluations. Also the number of
/// first steps that --verify compares with a plain loop.
struct evaluation_options {
  /// Steps from one evaluation to the next, before the evaluation at the end; 0: only
  /// at the end.
  int every = 0;
  /// Largest number of held-out samples in an evaluation; 0: no evaluation.
  std::int64_t samples = 1000;
  /// Number of first steps that are proved before the run; 0: no proof.
  int verify = 0;
  /// Loss in nats; table and results say when the training reached it.
  std::optional<double> target = {};
};

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

/// One sentence with the mistake and the allowed values; empty if the options are
/// valid.
std::string validation_error(const evaluation_options& o);
/// One sentence with the mistake and the allowed values; empty if the options are
/// valid. `weights` is not checked.
std::string validation_error(const inference_options& o);

} // namespace troupe
