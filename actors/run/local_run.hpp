// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/run/actor_registry.hpp"
#include "actors/run/actor_runtime.hpp"
#include "actors/run/distant_actors.hpp"
#include "actors/run/recorder.hpp"
#include "actors/run/run_monitor.hpp"
#include "actors/run/run_resources.hpp"
#include "actors/run/run_status.hpp"

#include <functional>
#include <memory>
#include <vector>

namespace troupe {

/// The part of a run in this process: the ranks here with devices and memory, the
/// actors here, and the actor system. Usually that part is the whole run.
class local_run {
public:
  /// Makes handles of the actors that are in other processes.
  using distant_maker = std::function<std::unique_ptr<distant_actors>(
    caf::actor_system& system, const run_context& shared)>;

  /// The part to run here.
  struct part {
    /// Ranks in this process; empty in a process that only leads.
    std::vector<int> ranks;
    /// True if the recorder, and the coordinator that decides for the whole run, are
    /// here.
    bool leads = true;
    distant_maker make_remote_actors = {}; ///< Empty if all actors are here.
    /// Groups of the plan's GPUs, here and in other processes.
    known_groups groups = {};
    /// Polled on the constructor's thread while GPU groups join, and may become true on
    /// another thread; true ends the wait. May be empty.
    std::function<bool()> ended = {};
  };

  /// \param which ranks and actors of this process
  /// \param callbacks the constructor uses only `disorder.make_device`, `listener`,
  /// `relays` and `system`; the system outlives this object
  /// \throws std::bad_alloc, no_thread
  /// \throws std::runtime_error if GPUs of a group do not join
  /// \throws ended_while_joining if `ended` has returned true
  local_run(std::shared_ptr<const run_plan> plan, part which,
            const run_callbacks& callbacks = {});

  /// Spawns all actors that are here, and sends these actors the handles of all actors
  /// (actor_registry::wire()). If all actors are here, the call starts the run.
  /// \throws not_made if the maker of relays throws or returns no actor
  /// \throws exceptions of CAF
  void gather();

  /// Starts the run, if other processes host a part. Otherwise gather() has started the
  /// run, and the call does nothing.
  /// \pre gather() has returned, in every process of the run
  void begin() { registry_.begin(); }

  /// Ends all devices and actors, then the run's own actor system. If an actor or a
  /// device does not end, at_work() becomes true, and the call returns after about 20
  /// seconds or earlier. The actor system then remains.
  void shut_down();

  /// True if shut_down() could not end an actor or a device: then no member of this
  /// object may be destroyed.
  bool at_work() const { return at_work_; }

  bool real() const { return plan_->machine.clock == clock_kind::real; }
  const run_plan& plan() const { return *plan_; }
  message_meter& meter() { return meter_; }
  /// Wall time, also of a run in virtual time.
  wall_clock& clock() { return wall_clock_; }
  /// Stands still in a run in real time.
  virtual_clock& clock_of_virtual_time() { return virtual_clock_; }
  run_monitor& watch() { return watch_; }
  run_resources& resources() { return resources_; }
  run_status& status() { return *status_; }
  /// \pre `part::leads` of the constructor
  run_log& log() { return *log_; }
  actor_runtime& runtime() { return runtime_; }
  const actor_registry& actors() const { return registry_; }

  /// The run that end_or_leave left at work before this run; null if there is none.
  local_run* previous_left = nullptr;

private:
  run_context shared() {
    return {plan_, &meter_, real() ? nullptr : &virtual_clock_,
            real() ? nullptr : &interconnect_};
  }
  bool is_lost(int looks);

  std::shared_ptr<const run_plan> plan_;
  message_meter meter_;
  wall_clock wall_clock_;
  virtual_clock virtual_clock_;
  interconnect interconnect_;
  run_monitor watch_{*plan_, wall_clock_};
  run_resources resources_;
  bool at_work_ = false;

  // Members below may hold buffers, so these are destroyed before the pools are.
  std::shared_ptr<run_log> log_;
  std::shared_ptr<run_status> status_ = std::make_shared<run_status>();
  actor_runtime runtime_;
  std::unique_ptr<distant_actors> remote_actors_;
  actor_registry registry_;
};

/// Deletes a run, unless at_work(): such a run is never destroyed.
struct end_or_leave {
  void operator()(local_run* ended) const;
};

/// True if a run of this process has left work that never ends. Then the process must
/// end without destroying global objects: by std::_Exit.
bool is_at_work();

} // namespace troupe
