// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/mail/actor_handles.hpp"
#include "actors/mail/run_context.hpp"
#include "actors/rank/performer_actor.hpp"
#include "actors/run/actor_runtime.hpp"
#include "actors/run/distant_actors.hpp"
#include "actors/run/recorder.hpp"
#include "actors/run/run_resources.hpp"
#include "actors/run/run_status.hpp"

#include <caf/actor_system.hpp>

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace troupe {

/// Makes the actors of a run, sends the handles of all actors to these actors, and ends
/// all actors. The thread that performs the run makes all calls.
class actor_registry : private stage_indexing {
public:
  /// \param shared its objects outlive all actors
  /// \param resources outlives all actors and this object
  /// \param log null if the recorder and the coordinator of the run are in another
  /// process
  /// \param remote_actors makes forwarding actors; outlives this object; null if all
  /// actors are in this process
  /// \param relays null if the run has no relays
  actor_registry(run_context shared, run_resources& resources,
                 std::shared_ptr<run_log> log, std::shared_ptr<run_status> status,
                 distant_actors* remote_actors = nullptr,
                 std::shared_ptr<const user_relays> relays = {})
    : stage_indexing(*shared.plan),
      plan_(shared.plan),
      shared_(std::move(shared)),
      resources_(resources),
      log_(std::move(log)),
      status_(std::move(status)),
      remote_actors_(remote_actors),
      relays_(std::move(relays)),
      handles_(std::make_shared<actor_handles>(plan_)) {
    // nop
  }

  /// Makes all actors that are here, and forwarding actors for the others. After that
  /// the list of handles is complete. If the call throws, some of the actors exist.
  /// \throws not_made if the maker of relays throws or returns no actor
  /// \throws exceptions of CAF
  void spawn(caf::actor_system& system);

  /// Sends the handles of all actors to each actor except relays and the recorder; to
  /// data sources only if no actor is elsewhere. First stages come last, and start the
  /// run if all actors are here.
  /// \pre spawn() has returned
  void wire();

  /// Starts a run with actors elsewhere: sends the handles of all actors to the data
  /// sources. Does nothing if all actors are here.
  /// \pre wire() has returned in every process of the run
  void begin();

  /// The list of handles: complete after spawn(), null after clear().
  const std::shared_ptr<actor_handles>& handles() const { return handles_; }

  /// Sends an exit message to each actor that is here, also to forwarding actors; may
  /// be repeated. Does nothing after clear().
  void send_exits();

  /// Makes `runtime` count each actor that is here, for actor_runtime::actors().
  /// \param runtime the runtime whose system spawned the actors
  void count(actor_runtime& runtime) const;

  /// Drops the handles that this object holds.
  void clear() {
    handles_.reset();
    local_coordinator_ = coordinator_actor{};
  }

  /// The coordinator in this process, which posts to the `run_status`. If another
  /// process leads the run, this coordinator only reports actors that fail. The handle
  /// is empty before spawn() and after clear().
  const coordinator_actor& coordinator() const { return local_coordinator_; }

private:
  template <class Each>
  void for_each(const Each& each) const;
  performer_actor spawn(caf::actor_system& system, performer identity,
                        const std::string& name, const performer_devices& devices,
                        const core_maker& make);
  bool is_here(position where) const { return is_here(plan_->rank_of(where)); }
  bool is_here(int rank) const {
    return resources_.ranks()[static_cast<std::size_t>(rank)] != nullptr;
  }
  void spawn_stages(caf::actor_system& system);
  void spawn_relays(caf::actor_system& system);
  void spawn_experts(caf::actor_system& system);
  void spawn_shard(caf::actor_system& system, position where);

  std::shared_ptr<const run_plan> plan_;
  run_context shared_;
  run_resources& resources_;
  std::shared_ptr<run_log> log_;
  std::shared_ptr<run_status> status_;
  distant_actors* remote_actors_;
  std::shared_ptr<const user_relays> relays_;
  coordinator_actor local_coordinator_;
  std::shared_ptr<actor_handles> handles_;
};

} // namespace troupe
