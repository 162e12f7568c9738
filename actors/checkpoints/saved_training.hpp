// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/plan/run_plan.hpp"

#include <cstdint>
#include <memory>
#include <vector>

namespace troupe {

/// Arrays of the whole network: a bucket a layer.
using whole_buckets = std::vector<std::vector<float>>;

/// All that a run needs to go on behind a batch, whatever mesh it has then: its stages
/// were after the same update. What was in flight behind that is forwarded again.
struct saved_training {
  int batches = 0; ///< With those before the run.
  whole_buckets parameters;
  std::vector<whole_buckets> older;   ///< Versions still read: the last but one first.
  std::vector<whole_buckets> moments; ///< Of the optimizer, by number.
  std::vector<std::int64_t> updates;  ///< Of each layer, with those before the run.
};

/// Versions besides the newest that any schedule may still read.
inline int most_older(const run_plan& plan) {
  return 2 * plan.dims.stages + 2;
}

/// Makes a plan go on from there. What it needs is shared, not copied.
void go_on_from(std::shared_ptr<const saved_training> saved, run_plan& plan);

} // namespace troupe
