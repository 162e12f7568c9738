#pragma once

#include "actors/mail/props.hpp"
#include "actors/updates/optimizer_core.hpp"

#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace troupe {

struct optimizer_shard_state {
  std::string name = "optimizer";
  props shared;
  position where{};
  std::vector<device*> computers; ///< Of each replica's rank.
  std::unique_ptr<optimizer_core> core;
  optimizer_shard_peers peers;
  bool measuring = false;       ///< The work under way is that of the norm.
  bool measure_is_next = false; ///< When the first replica goes on.
  std::vector<int> waiting;     ///< Replicas whose updates wait.
};

/// Holds the optimizer state of one stage of a data replica, and makes its versions.
optimizer_shard_actor::behavior_type
optimizer_shard(optimizer_shard_actor::stateful_pointer<optimizer_shard_state> self,
                props shared, position where, std::vector<device*> computers,
                optimizer_memory memory);

} // namespace troupe
