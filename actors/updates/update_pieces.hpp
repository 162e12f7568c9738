// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/plan/run_plan.hpp"
#include "actors/rank/weave.hpp"

namespace troupe {

/// What an update does, in its order; a plan needs only some of it.
struct update_steps {
  bool tied = false;     ///< The stage has an end of a tied matrix.
  bool measures = false; ///< Adds directions, and squares for the norm.
  bool norm = false;     ///< Others have parts of the norm.
  bool servers = false;  ///< Parameter servers apply it.
  bool sums = false;     ///< Data replicas sum their gradients.
  bool own = false;      ///< They exchange gradients in a way of the user's own.
  bool gathers = false;  ///< Data replicas gather their shares of the version.
  int directions = 1;
};

/// The steps of the updates of a stage. Where parameter servers apply them, or others
/// have parts of the norm, directions are added and measured before.
update_steps steps_of(const run_plan& plan, position where);

/// The arithmetic that the pieces of an update run; empty where nothing is computed.
struct update_work {
  std::function<void()> add;       ///< Directions.
  std::function<void()> give_tied; ///< The same, and copies what tied ends are given.
  std::function<void()> measure;
  std::function<void()> apply; ///< For the first direction; others copy the version.
};

/// The pieces of an update for a direction. The first direction makes the version: it
/// waits for all gradients, ties, measures, finds the norm, applies, gathers. With
/// several directions it lets others of its rank go first, so that a rank gives all the
/// parts that it can before it makes the first version. The others wait for the
/// version, and copy it.
woven_action update_pieces(const update_steps& steps, int direction, update_work work);

} // namespace troupe
