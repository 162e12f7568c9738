#pragma once

#include "actors/optimizer_core.hpp"
#include "actors/port.hpp"
#include "actors/props.hpp"

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
  std::optional<port> to_others; ///< In virtual time.
  bool measuring = false;        ///< The work under way is that of the norm.
  bool norm_is_next = false;     ///< The next replica to go on is to measure it.
  std::vector<int> waiting;      ///< Replicas whose updates wait.
};

/// Holds the optimizer state of one stage of a data replica, and makes its versions.
optimizer_shard_actor::behavior_type
optimizer_shard(optimizer_shard_actor::stateful_pointer<optimizer_shard_state> self,
                props shared, position where, std::vector<device*> computers,
                optimizer_memory memory);

} // namespace troupe
