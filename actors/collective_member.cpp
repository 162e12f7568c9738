#include "actors/collective_member.hpp"

#include "actors/failure.hpp"

#include <utility>

namespace troupe {

namespace {

using self_pointer = collective_member_actor::stateful_pointer<collective_member_state>;

nanoseconds now(self_pointer self) {
  const auto* const clock = self->state.shared.clock;
  return clock != nullptr ? clock->now() : 0;
}

void ship(self_pointer self, std::vector<member_core::shipment> all) {
  auto& state = self->state;
  for (auto& [what, arrives] : all) {
    const auto& to = (*state.peers.members)[static_cast<std::size_t>(what.to)];
    if (state.shared.clock == nullptr)
      tell(self, *state.shared.meter, to, std::move(what));
    else
      state.shared.clock->at(
        arrives, [meter = state.shared.meter, to, message = std::move(what)] {
          post(*meter, to, message);
        });
  }
  if (state.core->done())
    tell(self, *state.shared.meter, state.peers.listener,
         mail::member_done{state.core->rank(), now(self), state.core->sent()});
}

} // namespace

collective_member_actor::behavior_type
collective_member(self_pointer self, props shared, collective_part part,
                  collective_memory memory, link_cost link) {
  auto& state = self->state;
  state.core = std::make_unique<member_core>(std::move(part), memory, link);
  state.name = state.core->name();
  state.shared = std::move(shared);
  report_failures(self);
  auto& meter = *state.shared.meter;
  return {
    hear(self, meter,
         [self](const collective_message& m) {
           ship(self, self->state.core->take(m, now(self)));
         }),
    hear(self, meter,
         [self](const collective_peers& peers) {
           self->state.peers = peers;
           ship(self, self->state.core->begin(now(self)));
         }),
    hear(self, meter,
         [self](const mail::explain&) {
           tell(self, *self->state.shared.meter, self->state.peers.listener,
                self->state.core->explain());
         }),
  };
}

} // namespace troupe
