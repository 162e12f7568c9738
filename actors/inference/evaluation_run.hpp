// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/inference/inference_run.hpp"
#include "models/data/data_set.hpp"
#include "models/evaluation.hpp"

#include <memory>

namespace troupe {

/// Held-out samples that stages evaluate.
struct evaluation_job {
  inference_plan plan;
  std::shared_ptr<const data_set> data;
  std::int64_t samples;    ///< The first of those held out.
  std::int64_t microbatch; ///< Samples of a portion.
};

/// What an evaluation found.
struct evaluation_result {
  inference_result run;
  score found; ///< If it finished.
};

/// Bytes of each stage, and of the samples that are on their way.
std::vector<std::int64_t> bytes_needed(const evaluation_job& job);

/// Evaluates. Losses are added in the order of samples, so the score is the evaluator's
/// to the bit, for any number of stages and threads, where its forwards are of as many
/// samples and on the same processors. \param interrupted as of perform \throws as
/// perform
evaluation_result evaluate(const evaluation_job& job,
                           const std::atomic<bool>* interrupted = nullptr);

} // namespace troupe
