// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/inference/inference_run.hpp"
#include "models/sampling.hpp"

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace troupe {

/// Texts that stages write.
struct generation_job {
  inference_plan plan;              ///< On the CPU, as key_value_cache is.
  std::vector<std::int32_t> prompt; ///< Of a longer one the last positions are read.
  std::int64_t tokens = 1;          ///< That each sequence gets behind the prompt.
  int sequences = 1; ///< That are written at once, each with random numbers of
                     ///< its own: sequence i is the same beside any others.
  sampling_options sampling;
  std::uint64_t seed = 1;
};

/// Why a job cannot be done, with what is allowed, in one sentence; empty if it can.
std::string refusal(const generation_job& job);

/// Bytes of each stage, and of tokens on their way. \pre refusal(job).empty()
std::vector<std::int64_t> bytes_needed(const generation_job& job);

/// A token of a text, and what it was chosen by.
struct generated_token {
  int sequence;
  std::int32_t token;
  std::span<const float> logits; ///< (V)
};

/// What was written.
struct generation_result {
  inference_result run;
  std::vector<std::vector<std::int32_t>> sequences; ///< Each with its prompt.
};

/// Writes. The first pass of a sequence reads its prompt; then stages keep keys and
/// values of what they have read, and a pass reads one token. Behind as many tokens as
/// the network has positions, a pass reads that many of the last ones anew, from
/// position 0 on, as learned positions ask for. Texts do not depend on the number of
/// stages, threads and sequences.
/// \param told of each token, on an actor's thread; may be empty
/// \pre refusal(job).empty() \throws as perform
generation_result generate(const generation_job& job,
                           const std::function<void(const generated_token&)>& told = {},
                           const std::atomic<bool>* interrupted = nullptr);

} // namespace troupe
