// SPDX-License-Identifier: BSD-3-Clause
#include "actors/rank/performer_actor.hpp"

#include "actors/mail/failure.hpp"

#include <utility>

namespace troupe {

performer_actor::behavior_type
performer_behavior(performer_actor::stateful_pointer<performer_state> self,
                   props shared, performer me, std::string name,
                   performer_devices devices, const core_maker& make) {
  report_failures(self);
  auto& state = self->state;
  auto& meter = *shared.meter;
  state.name = std::move(name);
  state.port = std::make_unique<actor_port<performer_actor>>(self, std::move(shared),
                                                             me, std::move(devices));
  state.core = make(*state.port);
  state.port->keep(state.core);
  return {
    hear(self, meter, [self](const mail::run& r) { self->state.core->go(r.what); }),
    hear(self, meter, [self](const mail::ended& e) { hear_end(*self->state.core, e); }),
    hear(self, meter,
         [self](const mail::letter& l) {
           const auto& port = *self->state.port;
           const auto* const part = std::get_if<collective_message>(&l.what);
           if (l.about == meeting_kind::sums && part != nullptr && !part->is_call())
             port.shared().meter->summed(port.at_work());
           self->state.core->take(l);
         }),
    hear(self, meter,
         [self](const mail::explain&) {
           auto& port = *self->state.port;
           port.tell(port.everybody().coordinator, self->state.core->explain());
         }),
    hear(self, meter, [self](const mail::wiring& w) { self->state.port->wire(w); }),
  };
}

} // namespace troupe
