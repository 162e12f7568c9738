#pragma once

#include "schedules/placement.hpp"

namespace troupe {

/// A stage in the mesh of ranks: of which data replica, and where in its pipeline.
///
///              stage 0   1   2   3
///   data 0   rank 0 1 2 3 4 5 6 7     every data replica is a whole pipeline with
///   ranks data 1   rank 8 9 ...             of its own and runs the same programs on
///   its share
///                                     of a batch; the same stages of all exchange
///                                     gradients. Two tensor shards of a stage are
///                                     ranks 2s and 2s + 1: one such group runs one
///                                     program
struct position {
  int data;    ///< Which data replica.
  int replica; ///< Within it: the direction, of a schedule with two.
  int stage;
  int tensor = 0; ///< Which shard of its layers.

  hosted_stage hosted() const { return {replica, stage}; }

  bool operator==(const position&) const = default;
};

} // namespace troupe
