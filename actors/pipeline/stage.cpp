#include "actors/pipeline/stage.hpp"

#include "actors/mail/failure.hpp"
#include "actors/mail/ship.hpp"

#include <cmath>

namespace troupe {

namespace {

using self_pointer = stage_actor::stateful_pointer<stage_state>;

template <class Handle, class Message>
void send(self_pointer self, const Handle& to, Message&& what) {
  tell(self, *self->state.shared.meter, to, std::forward<Message>(what));
}

/// Sends a tensor to a neighbour.
template <class Message>
void send_on(self_pointer self, const stage_actor& to, Message what) {
  const auto& state = self->state;
  const auto& header = what.header;
  const auto bytes = what.payload
                       ? header.samples * header.values * std::int64_t{sizeof(float)}
                       : std::llround(state.shared.plan->sizes.message);
  const auto from = state.core->where();
  auto receiver = from;
  receiver.stage = header.stage;
  ship(self, state.shared, {traffic::pipeline, bytes, from, receiver}, to,
       std::move(what));
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
    return send(self, self->state.peers.optimizer, mail::update_go{a.replica});
  auto request = core.begin_update(a);
  for (const auto& bucket : core.buckets_to_tell(request))
    self->state.tell_optimizer(bucket);
  send(self, self->state.peers.optimizer, std::move(request));
}

/// How the optimizer shard hears of a bucket of gradients: by mail if it stands on the
/// stage's rank, else over the network.
stage_core::tell_bucket teller(self_pointer self) {
  const auto& state = self->state;
  const auto from = state.core->where();
  const auto& to = state.peers.optimizer;
  if (from.replica == 0)
    return [meter = state.shared.meter, to](const auto& bucket) {
      post(*meter, to, mail::bucket_ready{bucket});
    };
  auto home = from;
  home.replica = 0;
  return [shared = state.shared, to, from, home,
          bytes = state.core->gradient_bytes()](const auto& bucket) {
    ship(
      shared,
      {traffic::gradients, bytes[static_cast<std::size_t>(bucket.bucket)], from, home},
      to, mail::bucket_ready{bucket});
  };
}

/// Sends what is due to other tensor shards, experts and data replicas.
void send_out(self_pointer self) {
  auto& state = self->state;
  const auto from = state.core->where();
  auto [to_shards, to_experts, to_replicas] = state.core->take_outbox();
  for (auto& what : to_shards) {
    auto receiver = from;
    receiver.tensor = what.to;
    const shipment how{traffic::tensor, what.bytes(), from, receiver};
    ship(self, state.shared, how,
         (*state.peers.shards)[static_cast<std::size_t>(what.to)], std::move(what));
  }
  for (auto& [number, what] : to_experts) {
    const auto& to = state.peers.experts[static_cast<std::size_t>(number)];
    if (what.loan) // it is here
      send(self, to, std::move(what));
    else
      ship(self, state.shared,
           {traffic::experts, state.core->bytes_of(what), from,
            state.core->host_of(number)},
           to, std::move(what));
  }
  for (auto& [step, what] : to_replicas) {
    auto receiver = from;
    receiver.data = what.to;
    const shipment how{step == exchange_step::sum ? traffic::gradients
                                                  : traffic::parameters,
                       what.bytes(), from, receiver};
    ship(self, state.shared, how,
         (*state.peers.others)[static_cast<std::size_t>(what.to)],
         mail::layer_message{std::move(what)});
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
  if (self->state.shared.plan->keep_versions)
    send(self, self->state.peers.recorder, self->state.core->last_update());
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
           self->state.tell_optimizer = teller(self);
           if (self->state.core->is_first())
             send(self, peers.data, mail::demand{});
         }),
  };
}

} // namespace troupe
