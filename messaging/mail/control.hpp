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
struct hold {};

struct held {
  int rank;
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

/// Coordinator to schedulers: the checkpoint has been taken.
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

/// Stage: its newest parameters, those of older versions that are still read (the last
/// but one first), and the gradients it summed last.
struct collected {
  position where;
  std::int64_t updates; ///< That made the parameters.
  std::int64_t samples; ///< That those cover.
  std::vector<buffer> parameters;
  std::vector<buffer> gradients;
  std::vector<std::vector<buffer>> older;

  // From another process, if a checkpoint is due: what the stage's optimizer shard has
  // of each moment, a bucket each, and the updates that it has made.
  std::vector<std::vector<buffer>> moments = {};
  std::int64_t state_updates = 0;
};

/// Coordinator to everybody: what are you waiting for?
struct explain {};

/// The answer. Empty `what`: nothing.
struct waiting_for {
  std::string who;
  std::string what;
  std::string on; ///< Another actor's name, if there is one to blame.
};

} // namespace troupe::mail
