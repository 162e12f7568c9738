// SPDX-License-Identifier: BSD-3-Clause
#include "actors/inference/inference_actors.hpp"

#include "actors/mail/failure.hpp"

#include <utility>

namespace troupe {

namespace {

using stage_pointer = inference_actor::stateful_pointer<inference_stage_state>;
using client_pointer = inference_actor::stateful_pointer<inference_client_state>;

/// Reports an exception of the actor as a failure, which ends the inference.
template <class Self>
void post_failures(Self* self) {
  self->set_exception_handler([self](std::exception_ptr& thrown) {
    auto reason = failure_of(self->state.name, thrown);
    self->state.shared.status->post_failure(text_of(reason));
    return reason;
  });
}

template <class Self, class Message>
void send(Self* self, const inference_actor& to, Message&& message) {
  send_from(self, *self->state.shared.meter, to, std::forward<Message>(message));
}

void start_forward(stage_pointer self) {
  auto& state = self->state;
  if (auto forward = state.core->begin())
    state.computer->enqueue(
      std::move(*forward),
      [meter = state.shared.meter, me = inference_actor{self}](const work_end& e) {
        send_external(*meter, me, mail::forward_ended{e.failure});
      });
}

void finish_forward(stage_pointer self, const mail::forward_ended& end) {
  if (end.failure)
    std::rethrow_exception(end.failure);
  auto out = self->state.core->end();
  send(self, self->state.peers.below, mail::free_above{});
  send(self, self->state.peers.above, std::move(out));
  start_forward(self);
}

void feed(client_pointer self) {
  auto& state = self->state;
  const occupied now{*state.seen, {}};
  while (state.capacity_above > 0) {
    auto next = state.client->next();
    if (!next)
      return;
    --state.capacity_above;
    send(self, state.peers.above, std::move(*next));
  }
}

void consume_result(client_pointer self, portion result) {
  auto& state = self->state;
  {
    const occupied now{*state.seen, {}};
    state.client->receive(result);
  }
  result = {};
  send(self, state.peers.below, mail::free_above{});
  if (state.client->is_done())
    state.shared.status->post_finished();
  else
    feed(self);
}

} // namespace

inference_actor::behavior_type inference_stage(stage_pointer self,
                                               inference_context shared,
                                               device* computer, int stage, int stages,
                                               std::shared_ptr<inference_work> work) {
  auto& state = self->state;
  state.shared = std::move(shared);
  state.computer = computer;
  state.core = std::make_unique<inference_stage_core>(stage, stages, std::move(work));
  state.name = state.core->name();
  post_failures(self);
  auto& meter = *state.shared.meter;
  return {
    on_owned_message<portion>(self, meter,
                              [self](portion in) {
                                self->state.core->receive(std::move(in));
                                start_forward(self);
                              }),
    on_message(self, meter,
               [self](const mail::free_above&) {
                 self->state.core->free_above();
                 start_forward(self);
               }),
    on_message(self, meter,
               [self](const mail::forward_ended& end) { finish_forward(self, end); }),
    on_message(self, meter,
               [self](const mail::explain&) {
                 self->state.shared.status->post_explanation(
                   self->state.core->explain());
               }),
    on_message(
      self, meter,
      [self](const inference_neighbours& peers) { self->state.peers = peers; }),
  };
}

inference_actor::behavior_type inference_client_actor(client_pointer self,
                                                      inference_context shared,
                                                      inference_client* client,
                                                      occupation* seen, int stages) {
  auto& state = self->state;
  state.shared = std::move(shared);
  state.client = client;
  state.seen = seen;
  post_failures(self);
  auto& meter = *state.shared.meter;
  return {
    on_owned_message<portion>(
      self, meter, [self](portion result) { consume_result(self, std::move(result)); }),
    on_message(self, meter,
               [self](const mail::free_above&) {
                 ++self->state.capacity_above;
                 feed(self);
               }),
    on_message(self, meter,
               [](const mail::forward_ended&) {}), // the client has no device
    on_message(self, meter,
               [self, stages](const mail::explain&) {
                 self->state.shared.status->post_explanation(
                   {self->state.name, "the output",
                    name_of_inference(stages - 1, stages)});
               }),
    on_message(self, meter,
               [self](const inference_neighbours& peers) {
                 self->state.peers = peers;
                 if (self->state.client->is_done())
                   self->state.shared.status->post_finished();
                 else
                   feed(self);
               }),
  };
}

} // namespace troupe
