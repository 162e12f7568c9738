// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "schedules/schedule.hpp"

#include <vector>

namespace troupe {

/// The most that one hosted stage holds at once; pools are sized from it.
struct stage_bounds {
  int stashes;        ///< Microbatches between the start of F and the end of B or W.
  int split_backward; ///< Microbatches between the start of I and the end of W.
  int versions;       ///< Weight versions alive.

  bool operator==(const stage_bounds&) const = default;
};

/// A shorter run that holds no less: with enough steps for any program to fill, repeat
/// itself and drain, and with as many microbatches behind the last whole update.
/// Programs repeat themselves once the pipeline is full, so what holds for it holds for
/// `dims`. Local rules keep their shape.
shape settled(const schedule& sch, const shape& dims);

/// Bounds for the stages of `rank`, in hosted_by's order. They hold whatever the
/// timing: a program fixes the order of what is held, a local rule has a bound of its
/// own.
std::vector<stage_bounds> bounds_of(const schedule& sch, const shape& dims, int rank);

} // namespace troupe
