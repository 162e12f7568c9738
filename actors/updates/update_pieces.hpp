// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/plan/run_plan.hpp"
#include "actors/rank/weave.hpp"

// The pieces of an update action, with the meetings between them, as a pure function of
// the plan.

namespace troupe {

/// The steps of an update, in execution order. A plan needs only some steps.
struct update_steps {
  bool tied = false;     ///< The stage has one end of a tied matrix.
  bool measures = false; ///< Adds directions, and computes squares for the norm.
  bool norm = false;     ///< Other shards have parts of the norm.
  bool servers = false;  ///< Parameter servers apply the update.
  bool sums = false;     ///< Data replicas sum gradients.
  bool has_user_exchange = false; ///< Data replicas exchange gradients by a meeting
                                  ///< that the user provides.
  bool gathers = false;           ///< Data replicas gather shares of the new version.
  int directions = 1;
};

/// The steps of a stage's updates. Directions are added and measured first, if
/// parameter servers apply updates or other shards have parts of the norm.
update_steps steps_of(const run_plan& plan, position where);

/// The arithmetic of an update's pieces; empty functions where nothing is computed.
struct update_work {
  std::function<void()> add; ///< Adds the gradients of the directions.
  /// Adds as `add` does; then copies the gradients that other ends of a tied matrix
  /// receive.
  std::function<void()> copy_tied;
  std::function<void()> measure;
  std::function<void()> apply; ///< Makes the version, in direction 0; other directions
                               ///< copy the version.
};

/// The pieces of an update for one direction. Direction 0 makes the version: waits for
/// all gradients, ties, measures, finds the norm, applies, gathers. With several
/// directions, direction 0 lets other actions of the rank run first. So a rank sends as
/// many parts as possible before the rank makes a first version. Other directions wait
/// for the version, then make a copy.
woven_action update_pieces(const update_steps& steps, int direction, update_work work);

} // namespace troupe
