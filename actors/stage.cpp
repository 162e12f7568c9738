#include "actors/stage.hpp"

#include "actors/failure.hpp"
#include "actors/ship.hpp"

namespace troupe {

namespace {

using self_pointer = stage_actor::stateful_pointer<stage_state>;

template <class Handle, class Message>
void send(self_pointer self, const Handle& to, Message&& what) {
  tell(self, *self->state.shared.meter, to, std::forward<Message>(what));
}

/// Sends a tensor to a neighbour; in virtual time it takes as long as the link says.
template <class Message>
void send_on(self_pointer self, const stage_actor& to, Message what) {
  const auto& shared = self->state.shared;
  const auto& header = what.header;
  const double bytes = what.payload
                         ? static_cast<double>(header.samples)
                             * static_cast<double>(header.values) * sizeof(float)
                         : shared.plan->link.bytes;
  shared.meter->moved(traffic::pipeline, static_cast<std::int64_t>(bytes));
  const auto now = shared.clock == nullptr ? 0 : shared.clock->now();
  ship_at(self, shared, now + shared.plan->link.of(bytes), to, std::move(what));
}

void announce(self_pointer self, const std::optional<action>& ready) {
  if (ready)
    send(self, self->state.peers.scheduler, mail::arrived{*ready});
}

void send_snapshot_if_due(self_pointer self) {
  if (auto copy = self->state.core->take_snapshot())
    send(self, self->state.peers.coordinator, std::move(*copy));
}

void start_update(self_pointer self, const action& a) {
  auto& core = *self->state.core;
  if (core.updating())
    send(self, self->state.peers.optimizer, mail::update_go{a.replica});
  else
    send(self, self->state.peers.optimizer, core.begin_update(a));
}

/// Sends what is due to other tensor shards and data replicas.
void send_out(self_pointer self) {
  auto& state = self->state;
  auto [to_shards, to_experts, to_replicas] = state.core->take_outbox();
  for (auto& what : to_shards) {
    const auto& to = (*state.peers.shards)[static_cast<std::size_t>(what.to)];
    const auto bytes = what.bytes();
    ship(self, state.shared, traffic::tensor, bytes, *state.to_shards, to,
         std::move(what));
  }
  for (auto& [number, what] : to_experts) {
    const auto& to = state.peers.experts[static_cast<std::size_t>(number)];
    if (what.loan) // it is here
      send(self, to, std::move(what));
    else
      ship(self, state.shared, traffic::experts, state.core->bytes_of(what),
           *state.to_experts, to, std::move(what));
  }
  for (auto& [step, what] : to_replicas) {
    const auto& to = (*state.peers.others)[static_cast<std::size_t>(what.to)];
    const auto bytes = what.bytes();
    ship(self, state.shared,
         step == exchange_step::sum ? traffic::gradients : traffic::parameters, bytes,
         *state.to_replicas, to, mail::layer_message{std::move(what)});
  }
}

/// An action waits; the part of it that ran last ran from start to end.
void pause(self_pointer self, nanoseconds start, nanoseconds end) {
  auto so_far = self->state.core->pause();
  so_far.start = start;
  so_far.end = end;
  send(self, self->state.peers.scheduler, mail::paused{so_far});
}

/// Computes as much of an action as it can without waiting.
void compute(self_pointer self, const action& a) {
  auto& state = self->state;
  auto next = state.core->next_work(state.tell_optimizer);
  send_out(self);
  state.computer->enqueue(std::move(next),
                          [meter = state.shared.meter, me = stage_actor{self},
                           a](nanoseconds from, nanoseconds to) {
                            post(*meter, me, mail::ended{a, from, to});
                          });
}

void start(self_pointer self, const action& a) {
  auto& state = self->state;
  auto& core = *state.core;
  if (a.what == op::update)
    return start_update(self, a);
  if (!core.unfinished()) {
    send_snapshot_if_due(self);
    if (a.what == op::forward && core.is_first())
      send(self, state.peers.data, mail::demand{});
    core.begin(a);
    send_out(self);
  }
  if (core.can_go_on())
    compute(self, a);
  else
    pause(self, 0, 0);
}

void finish(self_pointer self, const mail::ended& end) {
  auto& peers = self->state.peers;
  auto result = self->state.core->end(end.what);
  if (result.to_next)
    send_on(self, peers.next, std::move(*result.to_next));
  if (result.to_previous)
    send_on(self, peers.previous, std::move(*result.to_previous));
  if (result.loss)
    send(self, peers.recorder, *result.loss);
  for (auto& load : result.loads)
    send(self, peers.recorder, std::move(load));
  announce(self, result.arrived);
  result.what.start = end.start;
  result.what.end = end.end;
  send(self, peers.scheduler, mail::done{result.what});
}

/// What an action has waited for may be there.
void resume(self_pointer self) {
  announce(self, self->state.core->resumed());
}

/// A work has ended. The action goes on as its scheduler says, when it can.
void go_on_or_finish(self_pointer self, const mail::ended& end) {
  auto& core = *self->state.core;
  core.end_work();
  send_out(self);
  if (!core.unfinished())
    return finish(self, end);
  pause(self, end.start, end.end);
  resume(self);
}

template <class Message>
void take_from_group(self_pointer self, const Message& message) {
  self->state.core->take(message);
  send_out(self);
  resume(self);
}

/// The sample of the update under way, or of the part of it that ran.
template <class Ended>
sample update_sample(self_pointer self, const Ended& ran) {
  auto result = self->state.core->update_sample();
  result.start = ran.start;
  result.end = ran.end;
  result.ends_in = ran.ends_in;
  return result;
}

void finish_update(self_pointer self, const mail::updated& end) {
  const auto what = update_sample(self, end);
  for (const auto& forward : self->state.core->end_update())
    announce(self, forward);
  send_snapshot_if_due(self);
  send(self, self->state.peers.scheduler, mail::done{what});
}

} // namespace

stage_actor::behavior_type stage(self_pointer self, props shared, device* computer,
                                 position where, std::shared_ptr<stage_tensors> tensors,
                                 std::shared_ptr<expert_exchange> experts) {
  report_failures(self);
  auto& state = self->state;
  state.core = std::make_unique<stage_core>(shared.plan, where, std::move(tensors),
                                            std::move(experts));
  state.name = state.core->name();
  state.shared = std::move(shared);
  state.computer = computer;
  state.to_shards.emplace(state.shared.plan->link);
  state.to_experts.emplace(state.shared.plan->link);
  state.to_replicas.emplace(state.shared.plan->link);
  auto& meter = *state.shared.meter;
  return {
    // The most frequent first: CAF looks through them in order.
    hear(self, meter, [self](const mail::run& r) { start(self, r.what); }),
    hear(self, meter, [self](const mail::ended& e) { go_on_or_finish(self, e); }),
    hear(self, meter,
         [self](const activation& x) { announce(self, self->state.core->take(x)); }),
    hear(self, meter,
         [self](const gradient& x) { announce(self, self->state.core->take(x)); }),
    hear(self, meter,
         [self](const labels& x) { announce(self, self->state.core->take(x)); }),
    hear(self, meter,
         [self](const collective_message& m) { take_from_group(self, m); }),
    hear(self, meter,
         [self](const mail::layer_message& m) { take_from_group(self, m); }),
    hear(self, meter,
         [self](const mail::rows_from_expert& m) { take_from_group(self, m); }),
    hear(self, meter,
         [self](const mail::update_waits& so_far) {
           auto part = update_sample(self, so_far);
           part.part = true;
           send(self, self->state.peers.scheduler, mail::paused{part});
         }),
    hear(self, meter,
         [self](const mail::update_ready&) {
           announce(self, self->state.core->updating());
         }),
    hear(self, meter, [self](const mail::updated& e) { finish_update(self, e); }),
    hear(self, meter,
         [self](const mail::collect&) {
           send(self, self->state.peers.coordinator, self->state.core->collect());
         }),
    hear(self, meter,
         [self](const mail::explain&) {
           send(self, self->state.peers.coordinator, self->state.core->explain());
         }),
    hear(self, meter,
         [self](const stage_peers& peers) {
           self->state.peers = peers;
           self->state.tell_optimizer = [meter = self->state.shared.meter,
                                         to = peers.optimizer](const auto& bucket) {
             post(*meter, to, mail::bucket_ready{bucket});
           };
           if (self->state.core->is_first())
             send(self, peers.data, mail::demand{});
         }),
  };
}

} // namespace troupe
