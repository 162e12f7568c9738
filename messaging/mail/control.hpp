// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "kernels/pool.hpp"
#include "messaging/position.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace troupe::mail {

// What passes between the coordinator and everybody else.

/// Scheduler: its rank has done all it had to do.
struct finished {
  int rank;
};

/// Coordinator to schedulers: grant nothing more, and answer `held` when nothing runs.
struct hold {
  int round = 0; ///< Counts the times that a run is held, from 1.
};

struct held {
  int rank;
  int round = 0; ///< Of the `hold` that this answers.
};

/// Coordinator to schedulers: go on; so many batches have been evaluated.
struct proceed {
  int evaluated;
};

/// Scheduler: its rank has come to the next checkpoint, and waits for `go_on`.
struct at_checkpoint {
  int rank;
  int batches; ///< Of the run.
};

/// Coordinator to schedulers: what the checkpoint needs has been copied.
struct go_on {};

/// Coordinator to schedulers: begin no further update, and answer `begun`. A local rule
/// lets no further microbatch in.
struct stop {};

/// Scheduler: updates that have begun, of its stage with most; under a local rule the
/// first stage's microbatches.
struct begun {
  int rank;
  int count;
};

/// Coordinator to schedulers: end after so many of them.
struct stop_after {
  int count;
};

/// Stage: copies of its parameters after so many batches.
struct snapshot {
  int batches;
  position where;
  std::vector<buffer> parameters;
};

/// Coordinator to stages: hand over what you have, while all ranks rest.
struct collect {};

/// Stage: its newest parameters, and the gradients it summed last.
struct collected {
  position where;
  std::int64_t updates; ///< That made the parameters.
  std::int64_t samples; ///< That those cover.
  std::vector<buffer> parameters;
  std::vector<buffer> gradients;
};

/// Coordinator to stages: copy what a run needs of you to go on, while all ranks rest.
struct save {
  int batches;           ///< Of the run.
  bool hand_over = true; ///< What you save of a checkpoint, as `saved`.
  bool keep = false;     ///< All that you have, until you are told the next but one.
};

/// Stage: it has copied that. The copies follow.
struct copied {
  int batches;
  position where;
};

/// Stage: of each version that is still read, and of each moment of its optimizer
/// shard, one buffer with what the stage saves of it, piece behind piece
/// (saved_piece.hpp). Copies that another stage saves are not among them.
struct saved {
  int batches = 0;
  position where;
  std::int64_t updates = 0; ///< That the optimizer shard has made.
  std::vector<int> ages;    ///< Of each version: 0 is the newest, 1 the last but one.
  std::vector<buffer> versions;
  std::vector<buffer> moments;
};

/// Coordinator to a stage: hand over what you have kept.
struct recall {
  int batches; ///< Of the run.
  position where;
};

/// Stage: that, with what other replicas have as well. Nothing: it has not kept it.
struct recalled {
  saved copies;
};

/// Coordinator to everybody: what are you waiting for?
struct explain {};

/// The answer. Empty `what`: nothing.
struct waiting_for {
  std::string who;
  std::string what;
  std::string on; ///< Another actor's name, if there is one to blame.
  /// A sentence on what of the user's own has to go on first; empty: nothing has.
  std::string own = {};
};

} // namespace troupe::mail
