// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// The numbers of a run as rows of NumPy's structured arrays. Rows have no padding that
// NumPy would show.

#include "experiments/report/run_account.hpp"

#include <cstdint>
#include <vector>

namespace troupe::python {

/// An action, or a part of one, that a rank ran.
struct timeline_row {
  std::int32_t rank;
  char kind[1]; ///< F, B, I, W, U or R.
  std::int32_t stage;
  std::int32_t direction;
  std::int32_t microbatch;
  std::int32_t version; ///< Version that a pass read or an update made.
  std::int32_t versions_alive;
  bool part;    ///< Other parts of the action follow.
  double start; ///< Seconds on the run's clock.
  double end;
  std::int32_t expert; ///< -1: the stage or its optimizer.
};

/// Peak bytes of tensors of a rank: of all uses together, and of each use alone.
struct memory_row {
  std::int32_t rank;
  std::int64_t peak, parameters, gradients, optimizer, activations, passing, checkpoint;
};

/// Weight versions and staleness of a stage.
struct stage_row {
  std::int32_t stage;
  std::int32_t versions;      ///< Most versions alive at the same time.
  std::int32_t staleness_max; ///< Versions between a gradient's forward and its update.
  double staleness_mean;
};

/// The kept actions, by rank, in the rank's order. Empty if none were kept.
std::vector<timeline_row> timeline_rows(const run_account& run);

/// Empty from a simulation.
std::vector<memory_row> memory_rows(const run_account& run);

std::vector<stage_row> stage_rows(const run_account& run);

} // namespace troupe::python
