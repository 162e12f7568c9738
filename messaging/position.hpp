// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "schedules/placement.hpp"

namespace troupe {

/// The position of a stage in the mesh of ranks: data replica, direction, stage in the
/// pipeline, and tensor shard. With four stages of two shards each:
///
///              stage 0    1    2    3
///   data 0   rank 0 1  2 3  4 5  6 7
///   data 1   rank 8 9  ...
///
/// Every data replica is a whole pipeline on separate ranks. All replicas run the same
/// programs, each on a share of a batch. All replicas of a stage train one model
/// (replica_exchange.hpp). The shards of a stage are a rank group that runs one
/// program.
struct position {
  int data; ///< Index of the data replica.
  /// Index of the schedule's direction, from 0; always 0 in a schedule with one
  /// direction.
  int direction;
  int stage;
  int tensor = 0; ///< Index of the shard of the stage's layers.

  hosted_stage hosted() const { return {direction, stage}; }

  bool operator==(const position&) const = default;
};

} // namespace troupe
