// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/mail/actor_handles.hpp"

namespace troupe {

/// Makes actors that forward messages to actors in other processes. Each function
/// spawns a forwarding actor and returns the handle. An exit message ends a forwarding
/// actor, as any other actor. A forwarding actor does not forward the wiring.
class distant_actors {
public:
  virtual ~distant_actors() = default;

  virtual scheduler_actor scheduler(int rank) = 0;
  virtual stage_actor stage(position where) = 0;
  virtual performer_actor performer(const troupe::performer& target) = 0;
  virtual data_source_actor data_source(position first) = 0;
  virtual recorder_actor recorder() = 0;
  virtual coordinator_actor coordinator() = 0;
};

} // namespace troupe
