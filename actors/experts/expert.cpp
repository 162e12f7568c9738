#include "actors/experts/expert.hpp"

#include "actors/mail/failure.hpp"

#include <utility>

namespace troupe {

performer_actor::behavior_type
expert(performer_actor::stateful_pointer<expert_state> self, props shared,
       device* computer, position where, int number,
       std::shared_ptr<expert_work> work) {
  report_failures(self);
  auto& state = self->state;
  const auto plan = shared.plan;
  state.port = std::make_unique<actor_port<performer_actor>>(
    self, std::move(shared), performer{role::expert, where, number},
    std::vector{computer});
  state.core =
    std::make_unique<expert_core>(plan, where, number, *state.port, std::move(work));
  state.name = state.core->name();
  return performer_behavior(self);
}

} // namespace troupe
