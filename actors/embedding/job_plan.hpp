// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/checkpoints/training_state.hpp"
#include "actors/embedding/training_job.hpp"
#include "messaging/links/node_address.hpp"
#include "messaging/mail/nodes.hpp"
#include "plan/run_plan.hpp"

#include <tl/expected.hpp>

#include <memory>
#include <string>
#include <vector>

// The plan of a user's job, in the process that leads the run and on nodes.

namespace troupe {

/// The plan of a job in the process that leads the run.
struct planned_job {
  run_plan plan = {};
  std::string text = {};                ///< The job as text, for nodes to compare.
  std::vector<node_address> nodes = {}; ///< Empty: this process performs all ranks.
  checkpoint_options checkpoints = {};  ///< After find_checkpoints().
  /// The state of a checkpoint that has all steps of the job; null if steps are left.
  std::shared_ptr<const training_state> complete = {};
  std::vector<std::string> warnings = {}; ///< Reasons why checkpoints were skipped.
};

/// The network of a job. The error is one sentence.
tl::expected<network<float>, std::string> network_for(const training_job& job);

/// The plan of a job. The error is one sentence, also for an exception of an object
/// that the job brings. \throws std::bad_alloc
tl::expected<planned_job, std::string> plan_of(const training_job& job);

/// The plan of a job on a node, before a leader asks for a part.
struct job_of_node {
  run_plan plan;
  std::string text;      ///< The job as text, to compare with the leader's.
  bool lists_processors; ///< False: ranks get the node's GPUs in rotation.
};

/// The plan of a job on a node. The error is one sentence, as in plan_of().
/// \throws std::bad_alloc
tl::expected<job_of_node, std::string> plan_on_node(training_job job);

/// The plan of the part of a job that a leader requests from a node. The error is one
/// sentence: another job, a limit of the machine, or a mistake in the request.
tl::expected<run_plan, std::string> plan_of_part(const job_of_node& job,
                                                 const mail::prepare& facts);

} // namespace troupe
