// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/mail/directory.hpp"
#include "actors/mail/props.hpp"
#include "actors/rank/performer_actor.hpp"
#include "actors/run/actor_house.hpp"
#include "actors/run/distant_actors.hpp"
#include "actors/run/equipment.hpp"
#include "actors/run/notice_board.hpp"
#include "actors/run/recorder.hpp"

#include <caf/actor_system.hpp>

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace troupe {

/// Makes the actors of a run, sends each actor the handles of all others, and ends all
/// actors.
class roster : private places {
public:
  /// \param resources outlives all actors
  /// \param log null: the recorder and the coordinator of the run are elsewhere
  /// \param remote_actors outlives this object; null: no actor is elsewhere
  /// \param relays null: there are none
  roster(props shared, equipment& equipped, std::shared_ptr<run_log> log,
         std::shared_ptr<notice_board> board, distant_actors* elsewhere = nullptr,
         std::shared_ptr<const own_relays> relays = {})
    : places(*shared.plan),
      plan_(shared.plan),
      shared_(std::move(shared)),
      equipped_(equipped),
      log_(std::move(log)),
      board_(std::move(board)),
      elsewhere_(elsewhere),
      relays_(std::move(relays)),
      everybody_(std::make_shared<directory>(plan_)) {
    // nop
  }

  /// Makes all actors. \throws exceptions of CAF, and `not_made` if the maker of relays
  /// throws; then some of the actors exist
  void spawn(caf::actor_system& system);

  /// Sends the handles of all actors to each actor; to data sources only if no actor is
  /// elsewhere. The data sources' wiring starts the run.
  void wire();

  /// Starts a run with actors elsewhere, after all actors have been wired.
  void begin();

  const std::shared_ptr<directory>& everybody() const { return everybody_; }

  /// Sends an exit message to each actor that is here; may be repeated.
  void dismiss();

  /// Counts each actor that is here in a host's system. \param runtime where the actors
  /// were spawned
  void count(actor_house& house) const;

  /// Drops all handles.
  void clear() {
    everybody_.reset();
    own_coordinator_ = coordinator_actor{};
  }

  /// The coordinator that posts to the `run_status`, also where another process leads
  /// the run. In that case this coordinator only reports actors that fail. The handle
  /// is empty before spawn().
  const coordinator_actor& coordinator() const { return own_coordinator_; }

private:
  template <class Each>
  void for_each(const Each& each) const;
  performer_actor spawn(caf::actor_system& system, performer who,
                        const std::string& name, const performer_devices& devices,
                        const core_maker& make);
  bool is_here(position where) const { return is_here(plan_->rank_of(where)); }
  bool is_here(int rank) const {
    return equipped_.ranks()[static_cast<std::size_t>(rank)] != nullptr;
  }
  void spawn_stages(caf::actor_system& system);
  void spawn_relays(caf::actor_system& system);
  void spawn_experts(caf::actor_system& system);
  void spawn_shard(caf::actor_system& system, position where);

  std::shared_ptr<const run_plan> plan_;
  props shared_;
  equipment& equipped_;
  std::shared_ptr<run_log> log_;
  std::shared_ptr<notice_board> board_;
  distant_actors* elsewhere_;
  std::shared_ptr<const own_relays> relays_;
  coordinator_actor own_coordinator_;
  std::shared_ptr<directory> everybody_;
};

} // namespace troupe
