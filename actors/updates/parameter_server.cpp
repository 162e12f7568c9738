#include "actors/updates/parameter_server.hpp"

#include "actors/mail/failure.hpp"

#include <utility>

namespace troupe {

performer_actor::behavior_type
parameter_server(performer_actor::stateful_pointer<parameter_server_state> self,
                 props shared, position where, std::shared_ptr<device> computer,
                 server_memory memory) {
  report_failures(self);
  auto& state = self->state;
  const auto plan = shared.plan;
  state.name = plan->server_of(where);
  state.computer = std::move(computer);
  state.port = std::make_unique<actor_port<performer_actor>>(
    self, std::move(shared), performer{role::parameter_server, where},
    std::vector{state.computer.get()});
  state.core =
    std::make_unique<server_core>(plan, where, *state.port, std::move(memory));
  return performer_behavior(self);
}

} // namespace troupe
