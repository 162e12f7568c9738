#pragma once

namespace troupe {

/// The sizes that a schedule is generated for.
struct shape {
  int stages;       ///< S: pieces of the network, in a line.
  int microbatches; ///< M: microbatches in a batch.
  int steps = 1;    ///< Batches in the run.

  int total() const { return microbatches * steps; }
};

} // namespace troupe
