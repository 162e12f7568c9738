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

// The protocol between a scheduler and the performers that compute on the scheduler's
// device:
//
//   performer   arrived        paused   arrived        done
//   scheduler            run                     run

/// Performer to scheduler: all inputs that an action needs to start or to resume have
/// arrived.
struct arrived {
  troupe::action action;
  performer sender;
};

/// Scheduler to performer: start or resume the action. If `turn` is no_turn, the device
/// runs the action's work in the order in which works are enqueued.
struct run {
  troupe::action action;
  /// The place of a pass in the rank's order, for a pass that may be granted while
  /// another pass runs. The device starts passes in increasing order of `turn`,
  /// whichever stage receives a `run` first.
  std::int64_t turn = no_turn;
  /// The second action of a pair, if `action` is the first; otherwise absent.
  std::optional<troupe::action> pair = {};
};

/// Performer to scheduler: an action waits at a meeting. After the meeting, the
/// performer sends `arrived` again.
struct paused {
  measured_action measured; ///< The part that has run; of length 0 if nothing ran.
  performer sender;
};

/// Performer to scheduler: an action has ended.
struct done {
  measured_action measured;
  performer sender;
};

/// Device to stage: all work of a pass has been launched on the GPU. The end of the
/// work has not been reported yet.
struct launched {
  troupe::action action;
  std::shared_ptr<gpu_completion> end;
};

/// Device to performer: the work that was enqueued for an action has ended. Times are
/// on the run's clock.
struct ended {
  troupe::action action = {};
  nanoseconds start = 0;
  nanoseconds end = 0;
  /// The exception that the work threw; null if none.
  std::exception_ptr failure = nullptr;
  nanoseconds off_processor_time = 0; ///< As in work_end.
};

/// Copies the measured times of a work to the action that the work computed.
/// \tparam End `ended` or `updated`
template <class End>
void set_times(measured_action& to, const End& from) {
  to.start = from.start;
  to.end = from.end;
  to.off_processor_time = from.off_processor_time;
}

/// Virtual clock to scheduler: all messages of this instant have been handled.
struct decide {};

/// First stage to data source: requests one more microbatch.
struct demand {};

} // namespace troupe::mail
