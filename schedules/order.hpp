// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "schedules/schedule.hpp"
#include "schedules/waiting.hpp"

#include <cstdint>
#include <memory>
#include <optional>

// Orders: which action a rank runs next, among actions whose inputs have arrived.

namespace troupe {

/// The kinds of actions that the caller of order::next() permits.
enum class may_begin : std::uint8_t {
  anything,
  updates, ///< Only updates.
  passes,  ///< All actions except updates.
};

/// Chooses the next action of a rank, by a cursor in a program or by a local rule. For
/// one thread at a time.
class order {
public:
  virtual ~order() = default;

  /// Returns the action to grant now, and removes that action's input from `arrived`. A
  /// recomputation leaves the gradient for the backward. Absent if no permitted action
  /// can run: inputs are missing, an update of the same stage runs, or the order is at
  /// a pause, a stop or the end. Under a local rule also absent while an action runs,
  /// or if the user's rule chooses none.
  /// \throws std::logic_error if a user's rule chooses an action that has not arrived
  virtual std::optional<action> next(waiting& arrived,
                                     may_begin permitted = may_begin::anything) = 0;

  /// Records that a granted action has ended.
  virtual void ended(const action& a) = 0;

  /// True if the rank has no more work in the run. Either all actions have ended, or
  /// all updates (local rules: microbatches) up to the count of stop_after().
  virtual bool finished() = 0;

  /// The next action of the program. Until next() returns that action, next() returns
  /// only resumed updates. Absent at the end of the program, and under a local rule.
  /// After next() has returned the first action of a pair, the second action of the
  /// pair.
  virtual std::optional<action> awaited() = 0;

  /// From now on, no stage of the rank starts more updates than the stage that has
  /// started most. Returns that number of updates. A local rule admits no more
  /// microbatches, and returns the number admitted; 0 on a rank without stage 0.
  virtual int freeze() = 0;

  /// Ends the run after `count` updates of each stage; under a local rule, after
  /// `count` microbatches.
  /// \pre `count` is at least the number that freeze() returned
  virtual void stop_after(int count) = 0;

  /// Sets a pause after the updates of the run's first `batches` batches. A call with a
  /// larger number moves the pause, so that the order continues. A local rule admits no
  /// microbatch after these batches, and ignores the call after freeze() on the rank of
  /// stage 0.
  /// \pre the last update of these batches covers no later microbatch
  virtual void pause_after(int batches) = 0;

  /// True if the pause is reached: on every stage of the rank, all updates before the
  /// pause have ended, and more actions follow. Under a local rule: all backwards and
  /// updates before the pause have ended, no action runs, and more microbatches follow.
  virtual bool paused() = 0;
};

/// Makes the order of `rank` under the schedule `sch`, which need not outlive the
/// order.
/// \pre the schedule allows `dims`
std::unique_ptr<order> make_order(const schedule& sch, const shape& dims, int rank);

} // namespace troupe
