// SPDX-License-Identifier: BSD-3-Clause
#include "actors/pipeline/stage.hpp"

#include "actors/mail/failure.hpp"
#include "plan/sharding.hpp"

#include <cmath>
#include <stdexcept>
#include <string>
#include <utility>

namespace troupe {

stage_actor_port::stage_actor_port(self_pointer self, run_context shared, performer me,
                                   performer_devices devices,
                                   channels_of_stage channels)
  : actor_port(self, std::move(shared), me, std::move(devices)),
    channels_(std::move(channels), [meter = shared_.meter,
                                    self = stage_actor{self}](std::exception_ptr why) {
      send_external(*meter, self, mail::ended{{}, 0, 0, std::move(why)});
    }) {
  // nop
}

void stage_actor_port::demand() {
  send_to(handles().data_source(me_.where), mail::demand{});
}

/// Sends a tensor to a neighbour: over a peer channel of the GPU if one exists, else as
/// a message with payload.
template <class Message>
void stage_actor_port::send_to_neighbour(Message message) {
  const auto& header = message.header;
  const auto& plan = *shared_.plan;
  const auto simulated_bytes = [&] {
    const auto& sizes = plan.work.simulated();
    return std::llround(sizes.stored_bytes(sizes.message)
                        * plan.part_of_largest(me_.where.data, header.microbatch));
  };
  const auto bytes = plan.work
                       ? header.samples * header.values * std::int64_t{sizeof(float)}
                       : std::int64_t{simulated_bytes()};
  auto receiver = me_.where;
  receiver.stage = header.stage;
  const tensor_transfer route{traffic::pipeline, bytes, me_.where, receiver};
  if (auto* const ledger = handles().ledger_between(me_.where, receiver))
    ledger->received(message);
  if (channels_.can_send<Message>())
    return channels_.send<Message>(
      std::move(message),
      [shared = shared_, route, to = handles().stage(receiver)](Message call) {
        send_tensor(shared, route, to, std::move(call));
      });
  handles().to_neighbour(me_.where, receiver, [&](const auto& to) {
    send_tensor(self_, shared_, route, to, std::move(message));
  });
}

template <class Message>
void stage_actor_port::receive(const Message& call) {
  channels_.receive<Message>(
    call, [meter = shared_.meter, me = stage_actor{self_}](Message complete) {
      send_external(*meter, me, std::move(complete));
    });
}

/// Checks a tensor that a user's relay has forwarded to this stage.
/// \param step 1 for activations, which go to the stage above; -1 for gradients
template <class Message>
void stage_actor_port::check_relayed(int step, const Message& message) const {
  const auto& actors = handles();
  const bool of_source = step > 0 && me_.where.stage == 0 && message.header.stage == 0;
  if (actors.ledgers.empty() || of_source)
    return;
  auto sender = me_.where, beyond = me_.where;
  sender.stage -= step;
  beyond.stage += step;
  auto* const ledger = actors.ledger_between(sender, me_.where);
  if (ledger == nullptr || message.header.stage == beyond.stage)
    throw std::runtime_error(
      actors.ledger_between(me_.where, beyond)->name() + " sent a message of stage "
      + std::to_string(me_.where.stage)
      + " back to that stage: a relay sends messages on to stage "
      + std::to_string(beyond.stage));
  ledger->sent_on(message);
}

void stage_actor_port::check(const activation& message) const {
  check_relayed(1, message);
}

void stage_actor_port::check(const gradient& message) const {
  check_relayed(-1, message);
}

void stage_actor_port::send_on(activation message) {
  send_to_neighbour(std::move(message));
}

void stage_actor_port::send_back(gradient message) {
  send_to_neighbour(std::move(message));
}

/// The returned function sends to the optimizer shard, and is callable on any thread.
/// If the shard is on the stage's rank, the message takes no time; else the message
/// takes time on the network.
stage_port::bucket_notifier stage_actor_port::notifier() {
  const auto from = me_.where;
  auto home = from;
  home.direction = 0;
  const auto note = [home](const mail::bucket_ready& bucket) {
    return mail::meeting_message{
      {role::optimizer_shard, home}, meeting_kind::directions, bucket};
  };
  const auto to = handles().optimizer(home);
  if (from.direction == 0)
    return [meter = shared_.meter, to, note](const mail::bucket_ready& bucket) {
      send_external(*meter, to, note(bucket));
    };
  std::vector<std::int64_t> bytes;
  for (const auto values : held_of(*shared_.plan, shared_out::gradients, from))
    bytes.push_back(values * std::int64_t{sizeof(float)});
  return [shared = shared_, to, from, home, note,
          bytes = std::move(bytes)](const mail::bucket_ready& bucket) {
    send_tensor(
      shared,
      {traffic::gradients, bytes[static_cast<std::size_t>(bucket.bucket)], from, home},
      to, note(bucket));
  };
}

on_launched stage_actor_port::launch_notifier(const action& a) {
  return [meter = shared_.meter, me = stage_actor{self_},
          a](std::shared_ptr<gpu_completion> end) {
    send_external(*meter, me, mail::launched{a, std::move(end)});
  };
}

void stage_actor_port::report(const mail::microbatch_loss& loss) {
  send_to(handles().recorder, loss);
}

void stage_actor_port::report(mail::expert_load load) {
  send_to(handles().recorder, std::move(load));
}

void stage_actor_port::report(const mail::update_part& part) {
  send_to(handles().recorder, part);
}

void stage_actor_port::report(mail::version_made version) {
  send_to(handles().recorder, std::move(version));
}

void stage_actor_port::report(mail::snapshot copy) {
  send_to(handles().coordinator, std::move(copy));
}

namespace {

template <class Message>
void receive_tensor(stage_actor::stateful_pointer<stage_state> self,
                    const Message& message) {
  if (message.header.is_call())
    return self->state.port->receive(message);
  self->state.port->check(message);
  self->state.core->receive(message);
}

} // namespace

stage_actor::behavior_type stage(stage_actor::stateful_pointer<stage_state> self,
                                 run_context shared, performer_devices devices,
                                 position where, stage_work work,
                                 std::shared_ptr<stage_meetings> meetings,
                                 std::shared_ptr<stage_saver> saver,
                                 channels_of_stage channels) {
  report_failures(self);
  auto& state = self->state;
  auto& meter = *shared.meter;
  const auto plan = shared.plan;
  state.port = std::make_unique<stage_actor_port>(
    self, std::move(shared), performer{role::stage, where}, std::move(devices),
    std::move(channels));
  state.core = std::make_shared<stage_core>(plan, where, *state.port, std::move(work),
                                            std::move(meetings));
  state.port->keep(state.core);
  state.name = state.core->name();
  return {
    // The most frequent handlers come first: CAF tries handlers in this order.
    on_message(
      self, meter,
      [self](const mail::run& r) { self->state.core->run(r.action, r.turn, r.pair); }),
    on_message(self, meter,
               [self](const mail::ended& e) {
                 if (!e.failure)
                   self->state.port->check_channels();
                 handle_end(*self->state.core, e);
               }),
    on_message(self, meter,
               [self](const mail::launched& l) { self->state.core->launched(l); }),
    on_message(self, meter, [self](const activation& x) { receive_tensor(self, x); }),
    on_message(self, meter, [self](const gradient& x) { receive_tensor(self, x); }),
    on_message(
      self, meter,
      [self](const mail::meeting_message& l) { self->state.core->receive(l); }),
    on_message(self, meter, [self](const labels& x) { self->state.core->receive(x); }),
    on_message(self, meter,
               [self](const mail::explain&) {
                 self->state.port->send_to(self->state.port->handles().coordinator,
                                           self->state.core->explain());
               }),
    on_message(self, meter,
               [self](const mail::wiring& w) {
                 self->state.port->wire(w);
                 self->state.core->start();
               }),
    on_message(self, meter,
               [self](const mail::collect&) {
                 self->state.port->send_to(self->state.port->handles().coordinator,
                                           self->state.core->collect());
               }),
    on_message(
      self, meter,
      [self, where, saver](const mail::save& s) {
        auto& port = *self->state.port;
        const auto versions = self->state.core->versions();
        if (s.keep && saver)
          saver->keep(s.batches, versions);
        mail::saved copies{.batches = s.batches, .where = where};
        if (s.hand_over && saver)
          copies = saver->copy(s.batches, versions);
        port.send_to(port.handles().coordinator, mail::copied{s.batches, where});
        if (s.hand_over)
          port.send_to(port.handles().coordinator, std::move(copies));
      }),
    on_message(self, meter,
               [self, where, saver](const mail::fetch_kept_state& r) {
                 auto& port = *self->state.port;
                 port.send_to(port.handles().coordinator,
                              mail::kept_state{
                                saver
                                  ? saver->fetch_kept_state(r.batches)
                                  : mail::saved{.batches = r.batches, .where = where}});
               }),
  };
}

} // namespace troupe
