// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/run/progress.hpp"
#include "kernels/device.hpp"
#include "kernels/virtual_clock.hpp"
#include "messaging/record.hpp"

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace caf {
class actor_system;
}

namespace troupe {

struct user_relays;
struct training_copies;

/// Changes the order of events in virtual time, as real devices and threads might, but
/// in a repeatable way. Each function may be empty.
struct virtual_disorder {
  /// Makes a device in place of a virtual device, whose actions take the time that the
  /// cost model gives. The clock outlives the device.
  std::function<std::unique_ptr<device>(virtual_clock&)> make_device = {};

  /// Returns the largest number of handlers that run before the clock's next event. All
  /// handlers that can run do so in three cases: the function is empty, the clock has
  /// no event left, or an actor has posted to the run's `run_status`.
  std::function<std::size_t()> handlers = {};
};

/// The functions that a run calls, and the flag by which the caller ends a run early. A
/// function may be empty, unless the function's comment says otherwise. The thread that
/// waits for the run calls the functions, unless the function's comment names another
/// thread.
struct run_callbacks {
  /// Receives the parameters (one bucket for each layer) that each stage had after
  /// `batches` batches, counted with batches before the run. The pointers are valid
  /// during the call, and the run's clock stands still. Not called any more once
  /// `interrupted` is noticed. Must not be empty if the plan evaluates.
  std::function<void(int batches, const std::vector<const float*>& parameters)>
    evaluate = {};

  /// Receives copies of the state that a run needs to resume. Called for each
  /// checkpoint, while ranks compute, and at the end of a run with checkpoints. At the
  /// end only if the plan keeps weights and the run has not failed. After an
  /// interruption only if the schedule is synchronous and the run has finished a batch.
  /// Must not be empty if the plan has checkpoints.
  std::function<void(training_copies copies)> save = {};

  /// Waits until all copies given to `save` have been released, so that there is memory
  /// for the next copies, or the run may end. Called before copies for `save` are made,
  /// and before perform() returns or throws. Empty if `save` keeps no copies.
  std::function<void()> await_saved = {};

  /// Called at most ten times a second during the run, and once after the run's end.
  /// Not called at the end if perform() throws.
  std::function<void(const progress&)> report = {};

  /// Called with the actions that ranks have run since the last call. Called as often
  /// as `report`, just before `report`, also if `report` is empty. There are no actions
  /// unless the plan is watched.
  std::function<void(const recent_actions&)> watch = {};

  /// Called in virtual time for every message that an actor handles, on the receiver's
  /// thread: with the receiver's name, and the message's text. Not called for messages
  /// to user relays. Must be empty in real time.
  std::function<void(const char* receiver, const std::string& text)> listener = {};

  /// Other devices and another order of events in virtual time, for tests.
  virtual_disorder disorder = {};

  /// User actors between stages; null if there are none, and in a run on several
  /// machines.
  std::shared_ptr<const user_relays> relays = {};

  /// The system of the run's actors in real time; null if the run makes a system. A
  /// given system outlives the run, and the system's scheduler threads run the actors.
  /// Ignored in virtual time.
  caf::actor_system* system = nullptr;

  /// Set by any thread to end the run early; outlives the run. Stages that update
  /// together then end after the same update, the last one that any of these stages has
  /// started. Under a local rule the run ends when the passes of all admitted
  /// microbatches have ended. May be null.
  const std::atomic<bool>* interrupted = nullptr;
};

} // namespace troupe
