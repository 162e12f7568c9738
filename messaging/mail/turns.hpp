// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "kernels/device.hpp"
#include "messaging/mail/performers.hpp"
#include "messaging/record.hpp"
#include "schedules/action.hpp"

#include <exception>
#include <memory>
#include <optional>

namespace troupe::mail {

// The conversation between a scheduler and those who compute on its device:
//
//   performer   arrived        paused   arrived        done
//   scheduler            run                     run

/// Performer to scheduler: all that an action needs to begin, or to go on, is here.
struct arrived {
  action what;
  performer who;
};

/// Scheduler to performer: do it now, or in its turn.
struct run {
  action what;
  /// The rank-wide number of a pass that may be granted while another is under way: the
  /// device starts them in this order, whoever of its stages hears first.
  std::int64_t turn = no_turn;
  /// Of the first of a pair: the second.
  std::optional<action> pair = {};
};

/// Performer to scheduler: an action waits at a meeting; it will arrive again.
struct paused {
  measured_action what; ///< What it took so far; of no length if nothing ran.
  performer who;
};

/// Performer to scheduler: an action has ended.
struct done {
  measured_action what;
  performer who;
};

/// Device to stage: a GPU has all of a pass to do, and has not said that it has ended.
struct launched {
  action what;
  std::shared_ptr<launched_end> end;
};

/// Device to performer: the work that was enqueued for an action has ended.
struct ended {
  action what;
  nanoseconds start;
  nanoseconds end;
  std::exception_ptr failure = nullptr; ///< What the work threw, if it did.
};

/// Virtual clock to scheduler: all messages of this instant have been heard.
struct decide {};

/// First stage to data source: one more microbatch.
struct demand {};

} // namespace troupe::mail
