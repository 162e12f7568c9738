// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "plan/run_plan.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace troupe {

/// Arrays of the whole network: one bucket per layer.
using whole_buckets = std::vector<std::vector<float>>;

/// A state array of the optimizer.
struct named_buckets {
  std::string name;
  whole_buckets values;

  bool operator==(const named_buckets&) const = default;
};

/// The state that a run needs to continue after a batch, on any mesh. All stages of the
/// saved run had finished the same update. Microbatches that were in flight at that
/// point are forwarded again.
struct training_state {
  int batches = 0; ///< Batches completed, including batches before the saved run.
  whole_buckets parameters;
  /// Older versions that are still read, from the newest of them to the oldest.
  std::vector<whole_buckets> older;
  std::vector<named_buckets> state; ///< State arrays of the optimizer.
  /// Number of updates of each layer, including updates before the saved run.
  std::vector<std::int64_t> updates;
};

/// Upper bound on the number of versions, besides the newest, that any schedule may
/// still read.
inline int most_older(const run_plan& plan) {
  return 2 * plan.dims.stages + 2;
}

/// Makes a plan continue from a saved state. The plan shares ownership of the arrays,
/// and no array is copied.
/// \pre the plan has a training (`plan.work`)
void resume_from(std::shared_ptr<const training_state> saved, run_plan& plan);

/// One sentence if a resumed plan has other state arrays than the plan's optimizer
/// needs, else an empty text. Checkpoints of older versions of troupe do not name their
/// arrays. \pre the plan has a training (`plan.work`)
std::string state_error(const run_plan& plan);

} // namespace troupe
