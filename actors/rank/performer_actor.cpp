// SPDX-License-Identifier: BSD-3-Clause
#include "actors/rank/performer_actor.hpp"

#include "actors/mail/failure.hpp"

#include <utility>

namespace troupe {

performer_actor::behavior_type
performer_behavior(performer_actor::stateful_pointer<performer_state> self,
                   run_context shared, performer me, std::string name,
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
    on_message(self, meter,
               [self](const mail::run& r) { self->state.core->run(r.action); }),
    on_message(self, meter,
               [self](const mail::ended& e) { handle_end(*self->state.core, e); }),
    on_message(self, meter,
               [self](const mail::meeting_message& l) {
                 const auto& port = *self->state.port;
                 const auto* const part = std::get_if<collective_message>(&l.body);
                 if (l.meeting == meeting_kind::sums && part != nullptr
                     && !part->is_call())
                   port.shared().meter->summed(port.at_work());
                 self->state.core->receive(l);
               }),
    on_message(self, meter,
               [self](const mail::explain&) {
                 auto& port = *self->state.port;
                 port.send_to(port.handles().coordinator, self->state.core->explain());
               }),
    on_message(self, meter,
               [self](const mail::wiring& w) { self->state.port->wire(w); }),
  };
}

} // namespace troupe
