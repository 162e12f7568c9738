// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/mail/handles.hpp"
#include "actors/rank/actor_port.hpp"
#include "actors/rank/performer_core.hpp"

#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace troupe {

struct performer_state {
  std::string name = "performer";
  std::unique_ptr<actor_port<performer_actor>> port;
  std::shared_ptr<performer_core> core;
};

/// Makes the core of a performer, once, when the actor starts.
/// \param port owned by the actor, and destroyed with the actor. Device work may keep
/// the core alive for longer; the core must not use the port then
using core_maker = std::function<std::shared_ptr<performer_core>(performer_port& port)>;

/// The behavior of a performer that is not a stage: an optimizer shard, an expert, or a
/// parameter server.
/// \param name for reports and errors
/// \param devices outlive the actor
performer_actor::behavior_type
performer_behavior(performer_actor::stateful_pointer<performer_state> self,
                   run_context shared, performer me, std::string name,
                   performer_devices devices, const core_maker& make);

} // namespace troupe
