// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/run/actor_house.hpp"
#include "actors/run/distant_actors.hpp"
#include "actors/run/equipment.hpp"
#include "actors/run/notice_board.hpp"
#include "actors/run/recorder.hpp"
#include "actors/run/roster.hpp"
#include "actors/run/run_watch.hpp"

#include <functional>
#include <memory>
#include <vector>

namespace troupe {

/// The part of a run in this process: the ranks here with devices and memory, the
/// actors here, and the actor system. Usually that part is the whole run.
class ensemble {
public:
  /// Makes handles of the actors that are in other processes.
  using distant_maker = std::function<std::unique_ptr<distant_actors>(
    caf::actor_system& system, const props& shared)>;

  /// The part to run here.
  struct part {
    std::vector<int> ranks;
    bool leads = true;                ///< Has the coordinator and the recorder.
    distant_maker elsewhere = {};     ///< Empty: all actors are here.
    known_groups groups = {};         ///< Of the plan's GPUs, here and elsewhere.
    std::function<bool()> ended = {}; ///< As `gpu_groups` takes.
  };

  /// \param callbacks give the disorder, the listener, the relays and the system;
  /// other callbacks are not used here
  /// \throws std::bad_alloc, no_thread
  ensemble(std::shared_ptr<const run_plan> plan, part which,
           const run_callbacks& told = {});

  /// Spawns all actors that are here, and sends every actor the handles of all others:
  /// each may send messages from then on.
  void gather();

  /// Starts a run of which a part is elsewhere; else wiring has done so.
  void begin() { roster_.begin(); }

  /// Ends all actors, and the actor system if all actors have ended.
  void come_home();

  /// Whether an actor or a device is still at work and could not be ended: then no
  /// member of this object may be destroyed.
  bool at_work() const { return at_work_; }

  bool real() const { return plan_->clock == clock_kind::real; }
  const run_plan& plan() const { return *plan_; }
  mail_meter& meter() { return meter_; }
  wall_clock& clock() { return wall_clock_; }
  virtual_clock& clock_of_virtual_time() { return virtual_clock_; }
  run_watch& watch() { return watch_; }
  equipment& equipped() { return equipment_; }
  notice_board& board() { return *board_; }
  run_log& log() { return *log_; }
  actor_house& house() { return house_; }
  const roster& actors() const { return roster_; }

  ensemble* left_before = nullptr; ///< Left at work by an earlier run.

private:
  props shared() {
    return {plan_, &meter_, real() ? nullptr : &virtual_clock_,
            real() ? nullptr : &interconnect_};
  }
  bool is_lost(int looks);

  std::shared_ptr<const run_plan> plan_;
  mail_meter meter_;
  wall_clock wall_clock_;
  virtual_clock virtual_clock_;
  interconnect interconnect_;
  run_watch watch_{*plan_, wall_clock_};
  equipment equipment_;
  bool at_work_ = false;

  // Members below may hold buffers, so these are destroyed before the pools are.
  std::shared_ptr<run_log> log_;
  std::shared_ptr<notice_board> board_ = std::make_shared<notice_board>();
  actor_house house_;
  std::unique_ptr<distant_actors> elsewhere_;
  roster roster_;
};

/// Destroys an object, or leaves it for good where an actor or a device is still at
/// work.
struct end_or_leave {
  void operator()(ensemble* ended) const;
};

/// Whether a run of this process has left work that never ends. Then the process must
/// end without destroying global objects: by std::_Exit.
bool is_at_work();

} // namespace troupe
