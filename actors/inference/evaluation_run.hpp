// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/inference/inference_run.hpp"
#include "models/data/data_set.hpp"
#include "models/evaluation.hpp"

#include <memory>

// Evaluates held-out samples in a pipeline of stage actors.

namespace troupe {

/// An evaluation of held-out samples.
struct evaluation_job {
  inference_plan plan;
  std::shared_ptr<const data_set> data;
  std::int64_t samples;    ///< Number of samples, from the first held-out sample on;
                           ///< at most as many as the data has.
  std::int64_t microbatch; ///< Samples of a microbatch, which one portion carries; the
                           ///< last microbatch may have fewer.
};

/// The result of an evaluation.
struct evaluation_result {
  inference_result run;
  score final_score; ///< Valid if `run.outcome` is `finished`.
};

/// Bytes of tensor memory of each stage, parameters included. Stage 0 also counts the
/// buffers for samples and labels in flight.
std::vector<std::int64_t> bytes_needed(const evaluation_job& job);

/// Runs the evaluation. Losses are added in the order of samples, so the score does not
/// depend on the numbers of stages and threads. The score equals the score of an
/// `evaluator` (models/evaluation.hpp) to the bit, if both compute forwards of equal
/// numbers of samples on the same processors.
/// \param interrupted ends the evaluation once another thread sets the flag; may be
/// null
/// \throws the exceptions of perform() (inference_run.hpp)
evaluation_result evaluate(const evaluation_job& job,
                           const std::atomic<bool>* interrupted = nullptr);

} // namespace troupe
