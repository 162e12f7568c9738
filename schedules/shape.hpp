// SPDX-License-Identifier: BSD-3-Clause
#pragma once

namespace troupe {

/// Sizes that a schedule is generated for. A run may resume where another run ended.
/// Microbatches and versions then count from the resume point: the version at that
/// point is 0, and versions made before are -1, -2, ..
struct shape {
  int stages;             ///< S: stages that the network is cut into, in a line.
  int microbatches;       ///< M: microbatches in a batch.
  int steps = 1;          ///< Batches in the run.
  int batches_before = 0; ///< Batches that were trained before the run.
  /// Versions older than the newest one that exist at the start of the run.
  int older = 0;

  int total() const { return microbatches * steps; }
};

} // namespace troupe
