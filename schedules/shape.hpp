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
  /// Number of versions before version 0 that exist at the start of the run: -1 to
  /// -older.
  int older = 0;

  /// Number of microbatches in the run.
  int total() const { return microbatches * steps; }
};

} // namespace troupe
