#include "actors/updates/optimizer_shard.hpp"

#include "actors/mail/failure.hpp"

#include <utility>

namespace troupe {

performer_actor::behavior_type
optimizer_shard(performer_actor::stateful_pointer<optimizer_shard_state> self,
                props shared, position where, std::vector<device*> computers,
                optimizer_memory memory) {
  report_failures(self);
  auto& state = self->state;
  const auto plan = shared.plan;
  state.name = plan->optimizer_of(where);
  state.port = std::make_unique<actor_port<performer_actor>>(
    self, std::move(shared), performer{role::optimizer_shard, where},
    std::move(computers));
  state.core =
    std::make_unique<optimizer_core>(plan, where, *state.port, std::move(memory));
  return performer_behavior(self);
}

} // namespace troupe
