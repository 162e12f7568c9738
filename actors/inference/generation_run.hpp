// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/inference/inference_run.hpp"
#include "models/sampling.hpp"

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

// Generates text in a pipeline of stage actors, with key-value caches.

namespace troupe {

/// A job that generates texts.
struct generation_job {
  /// Stages must be on the CPU, as key-value caches exist only for the CPU.
  inference_plan plan;
  /// Tokens to continue, at least one. Of a prompt longer than the context, only the
  /// last positions are read.
  std::vector<std::int32_t> prompt;
  std::int64_t tokens = 1; ///< Number of tokens that each sequence gets after the
                           ///< prompt; at least 1.
  int sequences = 1; ///< Sequences generated at the same time, each with random numbers
                     ///< of its own. The text of sequence i does not depend on other
                     ///< sequences.
  sampling_options sampling;
  std::uint64_t seed = 1;
};

/// Returns one sentence if the model or the prompt of a job is invalid: the reason, and
/// the values that are allowed. Returns an empty text if both are valid. Other members
/// are not checked.
std::string validation_error(const generation_job& job);

/// Bytes of tensor memory of each stage, parameters included. Stage 0 also counts the
/// buffers for tokens in flight.
/// \pre validation_error(job) is empty
std::vector<std::int64_t> bytes_needed(const generation_job& job);

/// A generated token, and the logits from which the token was sampled. The logits are
/// valid during the callback.
struct generated_token {
  int sequence;
  std::int32_t token;
  std::span<const float> logits; ///< (V)
};

/// The result of a generation.
struct generation_result {
  inference_result run;
  /// Texts by sequence; each begins with the prompt. Texts may be shorter than
  /// requested unless `run.outcome` is `finished`.
  std::vector<std::vector<std::int32_t>> sequences;
};

/// Generates texts. The first pass of a sequence reads the prompt. Then stages keep
/// keys and values, and a pass reads one token. If a text is longer than the context,
/// each pass reads the last tokens again, as many as the context holds. Their positions
/// then start at 0, as learned positions require. Texts do not depend on the numbers of
/// stages, threads and sequences.
/// \param on_token called for each token, by one actor thread at a time; an exception
/// fails the generation; may be empty
/// \param interrupted ends the generation once another thread sets the flag; may be
/// null
/// \pre validation_error(job) is empty
/// \throws the exceptions of perform() (inference_run.hpp)
generation_result
generate(const generation_job& job,
         const std::function<void(const generated_token&)>& on_token = {},
         const std::atomic<bool>* interrupted = nullptr);

} // namespace troupe
