#pragma once

#include "actors/mail/handles.hpp"
#include "actors/rank/actor_port.hpp"
#include "actors/updates/server_core.hpp"

#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>

#include <memory>
#include <string>

namespace troupe {

struct parameter_server_state {
  std::string name = "parameter server";
  std::shared_ptr<device> computer;
  std::unique_ptr<actor_port<performer_actor>> port;
  std::unique_ptr<server_core> core;
};

/// Holds a share of a stage's parameters for all data replicas, and its optimizer
/// state. \param computer its own: it takes no rank's time
performer_actor::behavior_type
parameter_server(performer_actor::stateful_pointer<parameter_server_state> self,
                 props shared, position where, std::shared_ptr<device> computer,
                 server_memory memory);

} // namespace troupe
