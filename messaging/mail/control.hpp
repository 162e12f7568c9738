// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "kernels/pool.hpp"
#include "messaging/position.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace troupe::mail {

// Messages between the coordinator and all other actors: holding and stopping a run,
// snapshots, checkpoints, and reports about stalls.

/// Scheduler to coordinator: the rank has run all of its actions.
struct finished {
  int rank;
};

/// Coordinator to schedulers: grant no more actions, and answer `held` when nothing
/// runs.
struct hold {
  int round = 0; ///< Counts the holds of a run, from 1.
};

struct held {
  int rank;
  int round = 0; ///< Round of the `hold` that this message answers.
};

/// Coordinator to schedulers: resume after a hold. The run has evaluated, or skipped,
/// `evaluated` snapshots so far.
struct resume {
  int evaluated;
};

/// Scheduler to coordinator: the rank has reached the next checkpoint, and waits for
/// `resume_from_checkpoint`.
struct at_checkpoint {
  int rank;
  int batches; ///< Batches of the run that the rank has finished.
};

/// Coordinator to schedulers: resume; all stages have copied their part of the
/// checkpoint.
struct resume_from_checkpoint {};

/// Coordinator to schedulers: start no more updates, and answer `started`. A local rule
/// admits no more microbatches.
struct stop {};

/// Scheduler to coordinator: the number of updates that the rank's most advanced stage
/// has started. Under a local rule: the microbatches that the first stage has admitted.
struct started {
  int rank;
  int count;
};

/// Coordinator to schedulers: end after `count` updates of each stage, or under a local
/// rule after `count` microbatches.
struct stop_after {
  int count;
};

/// Stage to coordinator: copies of the stage's parameters after `batches` batches.
struct snapshot {
  int batches;
  position where;
  std::vector<buffer> parameters;
};

/// Coordinator to stages: send all parameters and gradients, while all ranks rest.
struct collect {};

/// Stage to coordinator: the newest parameters, and the gradients that were summed
/// last.
struct collected {
  position where;
  std::int64_t updates; ///< Updates that made the parameters.
  std::int64_t samples; ///< Samples that the updates cover.
  std::vector<buffer> parameters;
  std::vector<buffer> gradients;
};

/// Coordinator to stages: copy the state that a resumed run needs, while all ranks
/// rest.
struct save {
  int batches;           ///< Batches of the run that are finished.
  bool hand_over = true; ///< Send the stage's part of a checkpoint, as `saved`.
  /// Keep a copy of the stage's whole state until the second later request with `keep`.
  bool keep = false;
};

/// Stage to coordinator: the state has been copied. The copies follow.
struct copied {
  int batches;
  position where;
};

/// Stage to coordinator: the stage's part of a checkpoint. Each version that is still
/// read is one buffer, and so is each moment of the optimizer shard. A buffer holds the
/// pieces that the stage saves, one after another (saved_piece.hpp). Copies that
/// another stage saves are left out.
struct saved {
  int batches = 0;
  position where;
  std::int64_t updates = 0; ///< Updates that the optimizer shard has made.
  /// Age of each version: 0 is the newest, 1 the last but one.
  std::vector<int> ages;
  std::vector<buffer> versions;
  std::vector<buffer> moments;
};

/// Coordinator to a stage: send the state that was kept after `batches` batches.
struct fetch_kept_state {
  int batches; ///< Batches of the run that were finished then.
  position where;
};

/// Stage to coordinator: the kept state, including arrays that other replicas also
/// have. Empty `versions` and `moments`: the stage has not kept the requested state.
struct kept_state {
  saved copies;
};

/// Coordinator to all actors: report the input that you wait for.
struct explain {};

/// The answer to a request for explanation. An empty second text: the actor waits for
/// nothing.
struct waiting_for {
  std::string actor;
  std::string input;
  std::string peer; ///< Another actor's name, if one causes the wait.
  /// A sentence about the user's code that has to proceed first; empty if the user's
  /// code does not block the actor.
  std::string user_code = {};
};

} // namespace troupe::mail
