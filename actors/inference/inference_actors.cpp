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
    self->state.shared.board->post_failure(text_of(reason));
    return reason;
  });
}

template <class Self, class Message>
void send(Self* self, const inference_actor& to, Message&& what) {
  tell(self, *self->state.shared.meter, to, std::forward<Message>(what));
}

void go_on(stage_pointer self) {
  auto& state = self->state;
  if (auto forward = state.core->begin())
    state.computer->enqueue(
      std::move(*forward),
      [meter = state.shared.meter, me = inference_actor{self}](const work_end& e) {
        post(*meter, me, mail::forward_over{e.failure});
      });
}

void hand_on(stage_pointer self, const mail::forward_over& end) {
  if (end.failure)
    std::rethrow_exception(end.failure);
  auto out = self->state.core->end();
  send(self, self->state.peers.below, mail::free_above{});
  send(self, self->state.peers.above, std::move(out));
  go_on(self);
}

void feed(client_pointer self) {
  auto& state = self->state;
  const occupied now{*state.seen, {}};
  while (state.room_above > 0) {
    auto next = state.client->next();
    if (!next)
      return;
    --state.room_above;
    send(self, state.peers.above, std::move(*next));
  }
}

void use_up(client_pointer self, portion made) {
  auto& state = self->state;
  {
    const occupied now{*state.seen, {}};
    state.client->take(made);
  }
  made = {};
  send(self, state.peers.below, mail::free_above{});
  if (state.client->over())
    state.shared.board->post_finished();
  else
    feed(self);
}

} // namespace

inference_actor::behavior_type inference_stage(stage_pointer self,
                                               inference_props shared, device* computer,
                                               int stage, int stages,
                                               std::shared_ptr<inference_work> work) {
  auto& state = self->state;
  state.shared = std::move(shared);
  state.computer = computer;
  state.core = std::make_unique<inference_stage_core>(stage, stages, std::move(work));
  state.name = state.core->name();
  post_failures(self);
  auto& meter = *state.shared.meter;
  return {
    take<portion>(self, meter,
                  [self](portion in) {
                    self->state.core->take(std::move(in));
                    go_on(self);
                  }),
    hear(self, meter,
         [self](const mail::free_above&) {
           self->state.core->free_above();
           go_on(self);
         }),
    hear(self, meter, [self](const mail::forward_over& end) { hand_on(self, end); }),
    hear(self, meter,
         [self](const mail::explain&) {
           self->state.shared.board->post_explanation(self->state.core->explain());
         }),
    hear(self, meter,
         [self](const inference_neighbours& peers) { self->state.peers = peers; }),
  };
}

inference_actor::behavior_type inference_client_actor(client_pointer self,
                                                      inference_props shared,
                                                      inference_client* client,
                                                      occupation* seen, int stages) {
  auto& state = self->state;
  state.shared = std::move(shared);
  state.client = client;
  state.seen = seen;
  post_failures(self);
  auto& meter = *state.shared.meter;
  return {
    take<portion>(self, meter, [self](portion made) { use_up(self, std::move(made)); }),
    hear(self, meter,
         [self](const mail::free_above&) {
           ++self->state.room_above;
           feed(self);
         }),
    hear(self, meter, [](const mail::forward_over&) {}), // the client has no device
    hear(self, meter,
         [self, stages](const mail::explain&) {
           self->state.shared.board->post_explanation(
             {self->state.name, "what comes out",
              name_of_inference(stages - 1, stages)});
         }),
    hear(self, meter,
         [self](const inference_neighbours& peers) {
           self->state.peers = peers;
           if (self->state.client->over())
             self->state.shared.board->post_finished();
           else
             feed(self);
         }),
  };
}

} // namespace troupe
