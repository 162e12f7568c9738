// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "kernels/pool.hpp"
#include "messaging/position.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace troupe::mail {

// Messages between the coordinator and all other actors: holding and stopping a run,
// snapshots, checkpoints, and reports about stalls. The run loop (actors/run) sends
// requests to the coordinator, which forwards the requests.

/// Scheduler to coordinator: the rank has no more work in the run (order::finished).
struct finished {
  int rank;
};

/// Coordinator to schedulers: grant no more actions until `resume`, and answer `held`
/// when no action runs.
struct hold {
  int round = 0; ///< Counts the holds of a run, from 1.
};

/// Scheduler to coordinator: no action runs on the rank.
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
  /// Batches that the rank has finished, without the batches before a resumed run.
  int batches;
};

/// Coordinator to schedulers: resume; all stages have copied their part of the
/// checkpoint.
struct resume_from_checkpoint {};

/// Coordinator to schedulers: freeze the order of the rank (order::freeze), and answer
/// `started`. No stage starts more updates than the rank's most advanced stage; a local
/// rule admits no more microbatches.
struct stop {};

/// Scheduler to coordinator: the number of updates that the rank's most advanced stage
/// has started. Under a local rule: the microbatches that stage 0 has admitted; 0 on a
/// rank without stage 0.
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
  int batches; ///< Includes the batches before a resumed run.
  position where;
  std::vector<buffer> parameters;
};

/// Coordinator to stages: answer `collected`, with all parameters and gradients. No
/// rank runs an action meanwhile.
struct collect {};

/// Stage to coordinator: the newest parameters, and the gradients that were summed
/// last.
struct collected {
  position where;
  /// Updates of the stage, without the updates before a resumed run.
  std::int64_t updates;
  std::int64_t samples; ///< Samples that `updates` cover.
  std::vector<buffer> parameters;
  std::vector<buffer> gradients;
};

/// Coordinator to stages: copy the state that a resumed run needs. No rank runs an
/// action meanwhile.
struct save {
  /// Batches that are finished, without the batches before a resumed run.
  int batches;
  bool hand_over = true; ///< Send the stage's part of a checkpoint, as `saved`.
  /// Keep a copy of the stage's whole state until the second request with `keep` after
  /// this request.
  bool keep = false;
};

/// Stage to coordinator: the state has been copied. If `hand_over` is set in the
/// request, the stage sends `saved` next. From another node, `saved` may arrive before
/// `copied`.
struct copied {
  int batches;
  position where;
};

/// Stage to coordinator: the stage's part of a checkpoint. Each version that is still
/// read is one buffer, and each state array of the optimizer shard is one buffer.
/// Buffers that would be empty are left out. A buffer holds all values that the stage
/// saves, parameter after parameter (saved_piece.hpp). Values that another stage saves
/// are left out.
struct saved {
  /// Batches that are finished, without the batches before a resumed run.
  int batches = 0;
  position where;
  /// Updates that the optimizer shard has made, with the updates before a resumed run.
  std::int64_t updates = 0;
  /// Age of each version: 0 for the newest version, 1 for the version before the
  /// newest.
  std::vector<int> ages;
  std::vector<buffer> versions;
  std::vector<buffer> state;
};

/// Coordinator to a stage: send the state that was kept after `batches` batches.
struct fetch_kept_state {
  /// Batches that were finished when the stage kept the state, without the batches
  /// before a resumed run.
  int batches;
  position where;
};

/// Stage to coordinator: the kept state, including arrays that other replicas also
/// have. `versions` and `state` are empty if the stage has not kept the requested
/// state, or has no arrays.
struct kept_state {
  saved copies;
};

/// Coordinator to all actors: answer `waiting_for`, with the input that the actor waits
/// for.
struct explain {};

/// Any actor to coordinator: the answer to `explain`. `input` is empty if the actor
/// waits for nothing.
struct waiting_for {
  std::string actor; ///< Name of the answering actor.
  std::string input;
  /// Name of another actor that causes the wait; empty if there is none.
  std::string peer;
  /// A sentence about the user's code that has to proceed first; empty if the user's
  /// code does not block the actor.
  std::string user_code = {};
};

} // namespace troupe::mail
