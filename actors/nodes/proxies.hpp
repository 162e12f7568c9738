// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/mail/run_context.hpp"
#include "actors/run/distant_actors.hpp"
#include "messaging/wire/codec.hpp"

#include <caf/actor_system.hpp>

#include <functional>

// Proxies: local actors that stand for actors in other processes.

namespace troupe {

/// Sends a message to an actor in another process. Called on the proxies' threads, by
/// several at the same time.
using message_sender = std::function<void(const wire::address&, wire::actor_message)>;

/// Spawns proxies. A proxy has the typed interface of one actor in another process, and
/// passes messages to the sender function. Other actors send to a proxy as to a local
/// actor. A proxy drops the handles of the wiring. A message of a kind that stays
/// within a process ends the proxy with an error.
class proxies : public distant_actors {
public:
  /// \param system outlives this object
  /// \param shared the meter outlives the proxies
  /// \param send objects to which the function refers outlive the proxies
  proxies(caf::actor_system& system, run_context shared, message_sender send)
    : system_(system), shared_(std::move(shared)), send_(std::move(send)) {
    // nop
  }

  scheduler_actor scheduler(int rank) override;
  stage_actor stage(position where) override;
  performer_actor performer(const troupe::performer& target) override;
  data_source_actor data_source(position first) override;
  recorder_actor recorder() override;
  coordinator_actor coordinator() override;

private:
  template <class Handle>
  Handle spawn(const wire::address& receiver);

  caf::actor_system& system_;
  run_context shared_;
  message_sender send_;
};

} // namespace troupe
