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

struct own_relays;
struct training_copies;

/// What may happen in another order in virtual time than the clock says: what real
/// devices and threads do, but repeatable. Functions may be empty.
struct virtual_disorder {
  /// Makes a device in place of the one that takes what its actions cost.
  std::function<std::unique_ptr<device>(virtual_clock&)> make_device = {};

  /// How many handlers run before the clock's next event; empty: all that can.
  std::function<std::size_t()> handlers = {};
};

/// What a run tells its caller, and how the caller ends it early. Functions may be
/// empty. Those without another word are called on the thread that waits for the run.
struct run_callbacks {
  /// Gets the parameters (a bucket a layer) that each stage had after `batches`
  /// batches, with those before the run. The run's clock stands still meanwhile. Not
  /// empty if the plan evaluates.
  std::function<void(int batches, const std::vector<const float*>& parameters)>
    evaluate = {};

  /// Gets copies of what a run needs to go on, for each checkpoint and at the end,
  /// while ranks compute. Not empty if the plan has checkpoints.
  std::function<void(training_copies all)> save = {};

  /// Waits until nobody has such copies any more: then there is room for the next ones,
  /// and the run may end. Empty if `save` keeps none.
  std::function<void()> await_saved = {};

  /// Called now and then, at most ten times a second, and when the run is over.
  std::function<void(const progress&)> report = {};

  /// Called just before `report` in a run whose plan is watched: with what ranks have
  /// run since the last call.
  std::function<void(const recent_actions&)> watch = {};

  /// Told of every envelope in virtual time, on the receiver's thread: who opens it,
  /// and what it is.
  std::function<void(const char* receiver, const std::string& what)> listener = {};

  /// Other devices and another order of events in virtual time, for tests.
  virtual_disorder disorder = {};

  /// Actors of the user's own between stages; none where a run is on several machines.
  std::shared_ptr<const own_relays> relays = {};

  /// Where the run's actors live, in real time; null: in a system of their own. It
  /// outlives the run, and its scheduler's threads run them.
  caf::actor_system* system = nullptr;

  /// Set from outside to end the run early: where stages update together, all do after
  /// the first update that none of them has passed; else when all microbatches that
  /// have come in have been through. May be null.
  const std::atomic<bool>* interrupted = nullptr;
};

} // namespace troupe
