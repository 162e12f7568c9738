#pragma once

#include "actors/mail/handles.hpp"
#include "actors/rank/actor_port.hpp"
#include "actors/updates/optimizer_core.hpp"

#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>

#include <memory>
#include <string>
#include <vector>

namespace troupe {

struct optimizer_shard_state {
  std::string name = "optimizer";
  std::unique_ptr<actor_port<performer_actor>> port;
  std::unique_ptr<optimizer_core> core;
};

/// Holds the optimizer state of one stage of a data replica, and makes its versions.
/// \param computers of the ranks of all directions
performer_actor::behavior_type
optimizer_shard(performer_actor::stateful_pointer<optimizer_shard_state> self,
                props shared, position where, std::vector<device*> computers,
                optimizer_memory memory);

} // namespace troupe
