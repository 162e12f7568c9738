// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "schedules/schedule.hpp"

#include <vector>

// Bounds of a run's memory: stashed microbatches, split backwards and weight versions.

namespace troupe {

/// The largest numbers that one hosted stage holds at the same time. Memory pools are
/// sized by these bounds.
struct stage_bounds {
  int stashes;        ///< Microbatches between the start of F and the end of B or W.
  int split_backward; ///< Microbatches between the start of I and the end of W.
  int versions;       ///< Weight versions alive.

  bool operator==(const stage_bounds&) const = default;
};

/// Returns `dims` with fewer steps, for a shorter run with the same bounds. The
/// remaining steps let any program fill the pipeline, repeat and drain. The number of
/// microbatches after the run's last whole update stays as in `dims`. Programs repeat
/// once the pipeline is full, so bounds of the shorter run hold for `dims`. Returns
/// `dims` itself for local rules, for programs that do not repeat, and for short runs.
shape settled(const schedule& sch, const shape& dims);

/// Bounds for the stages of `rank`, in the order of hosted_by(). Bounds hold for any
/// timing: a program fixes the order of stashes, and a local rule limits the
/// microbatches in flight.
/// \pre the schedule allows `dims`
std::vector<stage_bounds> bounds_of(const schedule& sch, const shape& dims, int rank);

} // namespace troupe
