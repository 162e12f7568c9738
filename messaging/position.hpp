// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "schedules/placement.hpp"

namespace troupe {

/// A stage in the mesh of ranks: of which data replica, where in its pipeline, and
/// which tensor shard. With four stages of two shards each:
///
///              stage 0    1    2    3
///   data 0   rank 0 1  2 3  4 5  6 7
///   data 1   rank 8 9  ...
///
/// Every data replica is a whole pipeline with ranks of its own, and runs the same
/// programs on its share of a batch; the same stages of all keep one model. The shards
/// of a stage are a rank group that runs one program.
struct position {
  int data;      ///< Which data replica.
  int direction; ///< Of a schedule with two: 0 or 1; else 0.
  int stage;
  int tensor = 0; ///< Which shard of its layers.

  hosted_stage hosted() const { return {direction, stage}; }

  bool operator==(const position&) const = default;
};

} // namespace troupe
