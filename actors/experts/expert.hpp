#pragma once

#include "actors/experts/expert_core.hpp"
#include "actors/mail/handles.hpp"
#include "actors/rank/actor_port.hpp"

#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>

#include <memory>
#include <string>

namespace troupe {

struct expert_state {
  std::string name = "expert";
  std::unique_ptr<actor_port<performer_actor>> port;
  std::unique_ptr<expert_core> core;
};

/// One expert of one layer, on one rank: hears rows from the stages of all data
/// replicas that it serves, computes when its scheduler says so, and answers each.
/// \param where the stage that it stands with \param number in the network's list
performer_actor::behavior_type
expert(performer_actor::stateful_pointer<expert_state> self, props shared,
       device* computer, position where, int number, std::shared_ptr<expert_work> work);

} // namespace troupe
