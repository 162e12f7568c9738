// SPDX-License-Identifier: BSD-3-Clause
#include "actors/collectives/collective_member.hpp"

#include "actors/mail/failure.hpp"

#include <utility>

namespace troupe {

namespace {

using self_pointer = collective_member_actor::stateful_pointer<collective_member_state>;

/// Gives the sum that the member's collective has stopped at to the device for sums.
void ask_for_sum(self_pointer self) {
  auto& state = self->state;
  if (auto sum = state.core->take_sum())
    state.sums->enqueue(
      {.operations = static_cast<double>(sum->values), .run = std::move(sum->run)},
      [meter = state.shared.meter, me = collective_member_actor{self}](
        const work_end&) { send_external(*meter, me, mail::sum_over{}); });
}

/// Sends messages to other members, over the network where there is one. Then requests
/// a sum, and reports the end of the part.
void send_all(self_pointer self, std::vector<collective_message> messages) {
  auto& state = self->state;
  const auto& shared = state.shared;
  for (auto& message : messages) {
    const auto& to = (*state.peers.members)[static_cast<std::size_t>(message.to)];
    if (shared.links == nullptr)
      send_from(self, *shared.meter, to, std::move(message));
    else
      shared.links->send(
        message.from, message.to, static_cast<double>(message.bytes),
        [meter = shared.meter, to, message] { send_external(*meter, to, message); });
  }
  ask_for_sum(self);
  if (state.core->done())
    send_from(self, *shared.meter, state.peers.listener,
              mail::member_done{state.core->rank(),
                                shared.clock != nullptr ? shared.clock->now() : 0,
                                state.core->sent()});
}

} // namespace

collective_member_actor::behavior_type
collective_member(self_pointer self, run_context shared, collective_part part,
                  collective_memory memory, device* sums) {
  auto& state = self->state;
  state.core = std::make_unique<member_core>(
    std::move(part), memory, sums != nullptr ? sums_by::caller : sums_by::itself);
  state.sums = sums;
  state.name = state.core->name();
  state.shared = std::move(shared);
  report_failures(self);
  auto& meter = *state.shared.meter;
  return {
    on_message(self, meter,
               [self](const collective_message& m) {
                 send_all(self, self->state.core->receive(m));
               }),
    on_message(self, meter,
               [self](const collective_peers& peers) {
                 self->state.peers = peers;
                 send_all(self, self->state.core->begin());
               }),
    on_message(
      self, meter,
      [self](const mail::sum_over&) { send_all(self, self->state.core->end_sum()); }),
    on_message(self, meter,
               [self](const mail::explain&) {
                 send_from(self, *self->state.shared.meter, self->state.peers.listener,
                           self->state.core->explain());
               }),
  };
}

} // namespace troupe
