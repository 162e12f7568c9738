#pragma once

#include "schedules/placement.hpp"

namespace troupe {

/// A stage in the mesh of ranks: of which data replica, and where in its pipeline.
///
///   data 0   rank 0  1  2  3     every data replica is a whole pipeline with ranks of
///   data 1   rank 4  5  6  7     its own and runs the same programs on its share of a
///                                batch; the same stages of all exchange gradients
struct position {
  int data;    ///< Which data replica.
  int replica; ///< Within it: the direction, of a schedule with two.
  int stage;

  hosted_stage hosted() const { return {replica, stage}; }

  bool operator==(const position&) const = default;
};

} // namespace troupe
