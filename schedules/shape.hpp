// SPDX-License-Identifier: BSD-3-Clause
#pragma once

namespace troupe {

/// The sizes that a schedule is generated for. A run may go on where another has ended:
/// its microbatches and versions count from there, so versions made before are 0, -1..
struct shape {
  int stages;       ///< S: pieces of the network, in a line.
  int microbatches; ///< M: microbatches in a batch.
  int steps = 1;    ///< Batches in the run.
  int before = 0;   ///< Batches that came before it.
  int older = 0;    ///< Versions that are there besides the newest, made before it.

  int total() const { return microbatches * steps; }
};

} // namespace troupe
