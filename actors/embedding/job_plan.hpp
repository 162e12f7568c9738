// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/checkpoints/training_state.hpp"
#include "actors/embedding/training_job.hpp"
#include "actors/nodes/node_limits.hpp"
#include "plan/run_plan.hpp"

#include <tl/expected.hpp>

#include <memory>
#include <string>
#include <vector>

// The plan of a user's job, in the process that leads the run and on nodes.

namespace troupe {

/// The plan of a job in the process that leads the run.
struct planned_job {
  run_plan plan;
  std::string text; ///< The job as text, which each node compares with its own.
  checkpoint_options checkpoints; ///< After find_checkpoints().
  /// The state of a checkpoint that has all steps of the job; null if steps are left.
  std::shared_ptr<const training_state> complete;
  std::vector<std::string> warnings = {}; ///< Reasons why checkpoints were skipped.
};

/// The network of a job. The error is one sentence.
tl::expected<network<float>, std::string> network_for(const training_job& job);

/// The plan of a job. The error is one sentence, also for an exception of an object
/// that the job brings. \throws std::bad_alloc
tl::expected<planned_job, std::string> plan_of(const training_job& job);

/// One sentence if nodes cannot perform a job, else an empty text.
std::string node_error(const training_job& job);

/// The plan of the part of a job that a leader requests from a node. The error is one
/// sentence: another job, a limit of the machine, or a mistake in the request.
/// \throws std::bad_alloc
tl::expected<run_plan, std::string> plan_of_part(const training_job& job,
                                                 const mail::prepare& facts);

} // namespace troupe
