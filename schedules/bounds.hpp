// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "schedules/schedule.hpp"

#include <vector>

// Bounds of a run's memory: stashed microbatches, split backwards and weight versions.

namespace troupe {

/// The largest numbers that one hosted stage holds at once. Memory pools are sized by
/// these bounds.
struct stage_bounds {
  int stashes;        ///< Microbatches between the start of F and the end of B or W.
  int split_backward; ///< Microbatches between the start of I and the end of W.
  int versions;       ///< Weight versions alive.

  bool operator==(const stage_bounds&) const = default;
};

/// A shape with fewer steps, whose run holds as much at once. The steps are enough for
/// any program to fill, repeat and drain. As many microbatches follow the last whole
/// update. Programs repeat once the pipeline is full, so bounds of the shorter run hold
/// for `dims`. Local rules, and programs that do not repeat, keep the shape.
shape settled(const schedule& sch, const shape& dims);

/// Bounds for the stages of `rank`, in the order of hosted_by(). Bounds hold for any
/// timing: a program fixes the order of stashes, and a local rule limits the
/// microbatches in flight.
std::vector<stage_bounds> bounds_of(const schedule& sch, const shape& dims, int rank);

} // namespace troupe
