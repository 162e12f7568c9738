// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/rank/weave.hpp"
#include "plan/run_plan.hpp"

// The pieces of an update action, with the meetings between them, as a pure function of
// the plan.

namespace troupe {

/// The steps of an update that a plan needs. update_pieces() gives the order of
/// execution.
struct update_steps {
  bool tied = false;              ///< The stage has one end of a tied matrix.
  bool measures = false;          ///< A piece runs update_work::measure.
  bool norm = false;              ///< A norm meeting finds the factor of clipping.
  bool servers = false;           ///< Parameter servers apply the update.
  bool sums = false;              ///< Data replicas sum gradients.
  bool has_user_exchange = false; ///< Data replicas exchange gradients by a meeting
                                  ///< that the user provides.
  bool gathers = false;           ///< Data replicas gather shares of the new version.
  int directions = 1;
};

/// The steps of a stage's updates. Clipping needs a norm meeting (`norm`) in three
/// cases: the norm is the network's, other optimizer shards have parts of the norm, or
/// parameter servers apply the update. `measures` is set with `norm` or `servers`.
update_steps steps_of(const run_plan& plan, position where);

/// The arithmetic of an update's pieces; empty functions where nothing is computed.
struct update_work {
  std::function<void()> add; ///< Adds the gradients of the directions.
  /// Adds the gradients of the directions. Then copies the gradients that the other end
  /// of a tied matrix receives.
  std::function<void()> copy_tied;
  /// Adds the directions and the gradients of a tied matrix. With clipping, computes
  /// squares for the norm.
  std::function<void()> measure;
  std::function<void()> apply; ///< Makes the version, in direction 0; other directions
                               ///< copy the version.
};

/// The pieces of an update for one direction. Direction 0 makes the version: the pieces
/// wait for all gradients, run the user's exchange, exchange gradients of a tied
/// matrix, measure, wait for the norm, apply, and gather. Steps that `steps` does not
/// have are left out. With servers, the pieces wait for the servers' answers in place
/// of apply and gather. With several directions and no `measures`, direction 0 lets
/// other actions of the rank run first. So a rank sends the gradients of its other
/// updates before the rank makes a first version. Each other direction waits for the
/// version, then makes a copy.
woven_action update_pieces(const update_steps& steps, int direction, update_work work);

} // namespace troupe
