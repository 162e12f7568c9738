// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "schedules/schedule.hpp"
#include "schedules/waiting.hpp"

#include <cstdint>
#include <memory>
#include <optional>

// Orders: which action a rank runs next, among actions whose inputs have arrived.

namespace troupe {

/// The kinds of actions that may start now.
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

  /// Chooses the action to grant now, and removes the input from `arrived`. Absent if
  /// no action may run yet.
  virtual std::optional<action> next(waiting& arrived,
                                     may_begin permitted = may_begin::anything) = 0;

  /// Records that a granted action has ended.
  virtual void ended(const action& a) = 0;

  /// True if all actions have been granted and have ended.
  virtual bool finished() = 0;

  /// The action that must arrive before any other action can be granted, if there is
  /// one. After next() has returned the first of a pair, that is the second.
  virtual std::optional<action> awaited() = 0;

  /// Starts no more updates; a local rule admits no more microbatches. Returns the
  /// largest number of updates that any stage has started, or the number of
  /// microbatches admitted.
  virtual int freeze() = 0;

  /// Ends the run after `count` updates of each stage; under a local rule, after
  /// `count` microbatches.
  /// \pre `count` is at least the number that freeze() returned
  virtual void stop_after(int count) = 0;

  /// Pauses once each stage has made the updates of the run's first `batches` batches.
  /// A call with a larger number ends the pause. A local rule admits no microbatch
  /// after these batches.
  /// \pre the last update of these batches covers no later microbatch
  virtual void pause_after(int batches) = 0;

  /// True if the pause is reached: all actions before the pause have ended, and more
  /// actions follow.
  virtual bool paused() = 0;
};

/// Makes the order of `rank` under the schedule `sch`.
std::unique_ptr<order> make_order(const schedule& sch, const shape& dims, int rank);

} // namespace troupe
