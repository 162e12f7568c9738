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

/// The part of a run that this process plays: ranks and their equipment, actors, and
/// the house that these live in. Usually that is all of the run.
class ensemble {
public:
  /// Makes handles of the actors that play elsewhere.
  using distant_maker = std::function<std::unique_ptr<distant_actors>(
    caf::actor_system& system, const props& shared)>;

  /// Which part.
  struct part {
    std::vector<int> ranks;
    bool leads = true;                ///< Has the coordinator and the recorder.
    distant_maker elsewhere = {};     ///< Empty: nobody is elsewhere.
    known_groups groups = {};         ///< Of GPUs of which some are elsewhere.
    std::function<bool()> ended = {}; ///< As of gpu_groups.
  };

  /// \param told what it says of disorder, envelopes, relays and the system
  /// \throws std::bad_alloc, no_thread
  ensemble(std::shared_ptr<const run_plan> plan, part which,
           const run_callbacks& told = {});

  /// Spawns all actors that are here, and tells everybody of everybody else: whoever
  /// has mail for them may send it.
  void gather();

  /// Lets the run begin.
  void begin() { roster_.begin(); }

  /// Ends everybody, and the house if that succeeds.
  void come_home();

  /// Whether somebody is still at work, who could not be ended: then nothing of this
  /// may be.
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

  ensemble* left_before = nullptr; ///< Another that is still at work.

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

  // These may hold buffers, so they go before the pools do.
  std::shared_ptr<run_log> log_;
  std::shared_ptr<notice_board> board_ = std::make_shared<notice_board>();
  actor_house house_;
  std::unique_ptr<distant_actors> elsewhere_;
  roster roster_;
};

/// Destroys an ensemble, or leaves it for good where somebody of it is still at work.
struct end_or_leave {
  void operator()(ensemble* ended) const;
};

/// Whether a run of this process has left somebody at work. Then the process can end
/// only without destroying what is global: by std::_Exit.
bool is_at_work();

} // namespace troupe
