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
  /// Makes a device in place of a virtual device. A virtual device's actions take the
  /// time that the cost model gives.
  std::function<std::unique_ptr<device>(virtual_clock&)> make_device = {};

  /// Returns the number of handlers that run before the clock's next event. If empty,
  /// all handlers run that can.
  std::function<std::size_t()> handlers = {};
};

/// The functions that a run calls, and the flag by which the caller ends a run early.
/// Each function may be empty. The thread that waits for the run calls the functions,
/// unless the function's comment names another thread.
struct run_callbacks {
  /// Receives the parameters (one bucket for each layer) that each stage had after
  /// `batches` batches, counted with batches before the run. The run's clock stands
  /// still during the call. Must not be empty if the plan evaluates.
  std::function<void(int batches, const std::vector<const float*>& parameters)>
    evaluate = {};

  /// Receives copies of the state that a run needs to resume, for each checkpoint and
  /// at the end, while ranks compute. Must not be empty if the plan has checkpoints.
  std::function<void(training_copies copies)> save = {};

  /// Waits until all copies given to `save` have been released. Then there is memory
  /// for the next copies, and the run may end. Empty if `save` keeps no copies.
  std::function<void()> await_saved = {};

  /// Called at most ten times a second, and when the run is over.
  std::function<void(const progress&)> report = {};

  /// Called just before `report` in a run whose plan is watched: with the actions that
  /// ranks have run since the last call.
  std::function<void(const recent_actions&)> watch = {};

  /// Called for every message in virtual time, on the receiver's thread: with the
  /// receiver's name, and the message's text.
  std::function<void(const char* receiver, const std::string& text)> listener = {};

  /// Other devices and another order of events in virtual time, for tests.
  virtual_disorder disorder = {};

  /// User actors between stages; null if there are none, and in a run on several
  /// machines.
  std::shared_ptr<const user_relays> relays = {};

  /// The system of the run's actors in real time; null if the run makes a system. A
  /// given system outlives the run, and the system's scheduler threads run the actors.
  caf::actor_system* system = nullptr;

  /// Set by any thread to end the run early. Stages that update together then end after
  /// the same update, the last one that any of these stages has started. Under a local
  /// rule the run ends when all admitted microbatches have been through. May be null.
  const std::atomic<bool>* interrupted = nullptr;
};

} // namespace troupe
