// SPDX-License-Identifier: BSD-3-Clause
#include "actors/pipeline/stage.hpp"

#include "actors/mail/failure.hpp"

#include <cmath>
#include <stdexcept>
#include <string>
#include <utility>

namespace troupe {

stage_actor_port::stage_actor_port(self_pointer self, props shared, performer me,
                                   performer_devices devices, edges_of_stage edges)
  : actor_port(self, std::move(shared), me, std::move(devices)),
    edges_(std::move(edges),
           [meter = shared_.meter, self = stage_actor{self}](std::exception_ptr why) {
             post(*meter, self, mail::ended{{}, 0, 0, std::move(why)});
           }) {
  // nop
}

void stage_actor_port::demand() {
  tell(everybody().data_source(me_.where), mail::demand{});
}

/// Sends a tensor to a neighbour: over a peer channel of the GPU if one exists, else as
/// a message with payload.
template <class Message>
void stage_actor_port::send_tensor(Message what) {
  const auto& header = what.header;
  const auto& sizes = shared_.plan->sizes;
  const auto bytes =
    what.payload ? header.samples * header.values * std::int64_t{sizeof(float)}
                 : std::llround(
                   sizes.stored_bytes(sizes.message)
                   * shared_.plan->part_of_largest(me_.where.data, header.microbatch));
  auto receiver = me_.where;
  receiver.stage = header.stage;
  const shipment how{traffic::pipeline, bytes, me_.where, receiver};
  if (auto* const ledger = everybody().ledger_between(me_.where, receiver))
    ledger->given(what);
  if (edges_.gives<Message>())
    return edges_.give<Message>(
      std::move(what), [shared = shared_, how, to = everybody().stage(receiver)](
                         Message call) { ship(shared, how, to, std::move(call)); });
  everybody().to_neighbour(me_.where, receiver, [&](const auto& to) {
    ship(self_, shared_, how, to, std::move(what));
  });
}

template <class Message>
void stage_actor_port::take(const Message& call) {
  edges_.take<Message>(call, [meter = shared_.meter, me = stage_actor{self_}](
                               Message there) { post(*meter, me, std::move(there)); });
}

/// Checks a tensor that a user's relay has forwarded to this stage.
/// \param step 1 for activations, which go to the stage above; -1 for gradients
template <class Message>
void stage_actor_port::check_came(int step, const Message& what) const {
  const auto& all = everybody();
  const bool of_source = step > 0 && me_.where.stage == 0 && what.header.stage == 0;
  if (all.ledgers.empty() || of_source)
    return;
  auto sender = me_.where, beyond = me_.where;
  sender.stage -= step;
  beyond.stage += step;
  auto* const ledger = all.ledger_between(sender, me_.where);
  if (ledger == nullptr || what.header.stage == beyond.stage)
    throw std::runtime_error(
      all.ledger_between(me_.where, beyond)->name() + " sent back what stage "
      + std::to_string(me_.where.stage) + " gave it: it goes on to stage "
      + std::to_string(beyond.stage));
  ledger->sent_on(what);
}

void stage_actor_port::check(const activation& what) const {
  check_came(1, what);
}

void stage_actor_port::check(const gradient& what) const {
  check_came(-1, what);
}

void stage_actor_port::send_on(activation what) {
  send_tensor(std::move(what));
}

void stage_actor_port::send_back(gradient what) {
  send_tensor(std::move(what));
}

/// The returned function sends to the optimizer shard, and is callable on any thread.
/// If the shard is on the stage's rank, the message takes no time; else the message
/// takes time on the network.
stage_port::bucket_teller stage_actor_port::teller() {
  const auto from = me_.where;
  auto home = from;
  home.direction = 0;
  const auto note = [home](const mail::bucket_ready& bucket) {
    return mail::letter{
      {role::optimizer_shard, home}, meeting_kind::directions, bucket};
  };
  const auto to = everybody().optimizer(home);
  if (from.direction == 0)
    return [meter = shared_.meter, to, note](const mail::bucket_ready& bucket) {
      post(*meter, to, note(bucket));
    };
  std::vector<std::int64_t> bytes;
  for (const auto values : shared_.plan->held_of(shared_out::gradients, from))
    bytes.push_back(values * std::int64_t{sizeof(float)});
  return [shared = shared_, to, from, home, note,
          bytes = std::move(bytes)](const mail::bucket_ready& bucket) {
    ship(
      shared,
      {traffic::gradients, bytes[static_cast<std::size_t>(bucket.bucket)], from, home},
      to, note(bucket));
  };
}

on_launched stage_actor_port::launch_teller(const action& a) {
  return [meter = shared_.meter, me = stage_actor{self_},
          a](std::shared_ptr<launched_end> end) {
    post(*meter, me, mail::launched{a, std::move(end)});
  };
}

void stage_actor_port::report(const mail::microbatch_loss& loss) {
  tell(everybody().recorder, loss);
}

void stage_actor_port::report(mail::expert_load load) {
  tell(everybody().recorder, std::move(load));
}

void stage_actor_port::report(mail::version_made version) {
  tell(everybody().recorder, std::move(version));
}

void stage_actor_port::report(mail::snapshot copy) {
  tell(everybody().coordinator, std::move(copy));
}

namespace {

template <class Message>
void take_tensor(stage_actor::stateful_pointer<stage_state> self, const Message& what) {
  if (what.header.is_call())
    return self->state.port->take(what);
  self->state.port->check(what);
  self->state.core->take(what);
}

} // namespace

stage_actor::behavior_type stage(stage_actor::stateful_pointer<stage_state> self,
                                 props shared, performer_devices devices,
                                 position where, std::shared_ptr<stage_work> work,
                                 std::shared_ptr<stage_meetings> meetings,
                                 std::shared_ptr<stage_saver> saver,
                                 edges_of_stage edges) {
  report_failures(self);
  auto& state = self->state;
  auto& meter = *shared.meter;
  const auto plan = shared.plan;
  state.port = std::make_unique<stage_actor_port>(self, std::move(shared),
                                                  performer{role::stage, where},
                                                  std::move(devices), std::move(edges));
  state.core = std::make_shared<stage_core>(plan, where, *state.port, std::move(work),
                                            std::move(meetings));
  state.port->keep(state.core);
  state.name = state.core->name();
  return {
    // The most frequent handlers come first: CAF tries handlers in this order.
    hear(self, meter,
         [self](const mail::run& r) { self->state.core->go(r.what, r.turn, r.pair); }),
    hear(self, meter,
         [self](const mail::ended& e) {
           if (!e.failure)
             self->state.port->check_edges();
           hear_end(*self->state.core, e);
         }),
    hear(self, meter,
         [self](const mail::launched& l) { self->state.core->launched(l); }),
    hear(self, meter, [self](const activation& x) { take_tensor(self, x); }),
    hear(self, meter, [self](const gradient& x) { take_tensor(self, x); }),
    hear(self, meter, [self](const mail::letter& l) { self->state.core->take(l); }),
    hear(self, meter, [self](const labels& x) { self->state.core->take(x); }),
    hear(self, meter,
         [self](const mail::explain&) {
           self->state.port->tell(self->state.port->everybody().coordinator,
                                  self->state.core->explain());
         }),
    hear(self, meter,
         [self](const mail::wiring& w) {
           self->state.port->wire(w);
           self->state.core->start();
         }),
    hear(self, meter,
         [self](const mail::collect&) {
           self->state.port->tell(self->state.port->everybody().coordinator,
                                  self->state.core->collect());
         }),
    hear(self, meter,
         [self, where, saver](const mail::save& s) {
           auto& port = *self->state.port;
           const auto versions = self->state.core->versions();
           if (s.keep && saver)
             saver->keep(s.batches, versions);
           mail::saved copies{.batches = s.batches, .where = where};
           if (s.hand_over && saver)
             copies = saver->copy(s.batches, versions);
           port.tell(port.everybody().coordinator, mail::copied{s.batches, where});
           if (s.hand_over)
             port.tell(port.everybody().coordinator, std::move(copies));
         }),
    hear(self, meter,
         [self, where, saver](const mail::recall& r) {
           auto& port = *self->state.port;
           port.tell(
             port.everybody().coordinator,
             mail::recalled{saver ? saver->recall(r.batches)
                                  : mail::saved{.batches = r.batches, .where = where}});
         }),
  };
}

} // namespace troupe
