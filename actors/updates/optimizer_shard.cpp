#include "actors/updates/optimizer_shard.hpp"

#include "actors/mail/failure.hpp"
#include "actors/mail/ship.hpp"

#include <utility>

namespace troupe {

namespace {

using self_pointer = optimizer_shard_actor::stateful_pointer<optimizer_shard_state>;

/// The replica on whose rank the shard stands: it makes each new version.
constexpr int maker = 0;

template <class Handle, class Message>
void send(self_pointer self, const Handle& to, Message&& what) {
  tell(self, *self->state.shared.meter, to, std::forward<Message>(what));
}

const stage_actor& stage_of(self_pointer self, int replica) {
  return self->state.peers.stages[static_cast<std::size_t>(replica)];
}

void enqueue(self_pointer self, work what, const action& a) {
  auto& state = self->state;
  state.computers[static_cast<std::size_t>(a.replica)]->enqueue(
    std::move(what), [meter = state.shared.meter, me = optimizer_shard_actor{self},
                      a](nanoseconds from, nanoseconds to) {
      post(*meter, me, mail::ended{a, from, to});
    });
}

/// A local rule does nothing else meanwhile, so its rank need not hear that it waits.
bool ranks_wait(self_pointer self) {
  return !self->state.shared.plan->sch.local_rule();
}

/// Lets a replica's stage wait; it has run from start to end so far.
void let_wait(self_pointer self, int replica, nanoseconds start = 0,
              nanoseconds end = 0, meeting ends_in = nothing) {
  self->state.waiting.push_back(replica);
  if (ranks_wait(self))
    send(self, stage_of(self, replica), mail::update_waits{start, end, ends_in});
}

void apply(self_pointer self, int replica) {
  if (self->state.core->lacks_shares())
    return let_wait(self, replica);
  enqueue(self, self->state.core->apply(replica), {op::update, replica, 0, 0});
}

/// What a replica has waited for is there, if it waits.
void wake(self_pointer self, int replica) {
  if (std::erase(self->state.waiting, replica) == 0)
    return;
  if (ranks_wait(self))
    send(self, stage_of(self, replica), mail::update_ready{});
  else
    apply(self, replica);
}

void measure(self_pointer self) {
  self->state.measuring = true;
  enqueue(self, self->state.core->measure(), {op::update, maker, 0, 0});
}

/// All parts are there: the maker goes on, if it waits.
void wake_maker(self_pointer self) {
  self->state.measure_is_next = self->state.core->measures();
  wake(self, maker);
}

// An update that is nobody else's business is made at once. Others wait until all parts
// are there, so that a rank gives all the parts it can before it makes the first
// update.
void take(self_pointer self, const mail::update_request& part) {
  auto& state = self->state;
  const int replica = part.what.replica;
  state.core->take(part);
  const bool complete = state.core->complete();
  if (complete && replica == maker && state.core->measures())
    return measure(self);
  if (complete && state.peers.stages.size() == 1)
    return apply(self, replica);
  let_wait(self, replica);
  if (complete)
    wake_maker(self);
}

/// Sends to other data replicas.
void ship_all(self_pointer self, std::vector<collective_message> all) {
  auto& state = self->state;
  for (auto& what : all) {
    auto receiver = state.where;
    receiver.data = state.core->receiver_of(what);
    const auto kind = state.core->sums(what) ? traffic::gradients : traffic::parameters;
    const shipment how{kind, what.bytes(), state.where, receiver};
    ship(self, state.shared, how,
         (*state.peers.others)[static_cast<std::size_t>(receiver.data)],
         std::move(what));
  }
}

/// Takes what the exchange with other replicas brings. If the update has been waiting
/// for that alone, its maker goes on.
template <class Message>
void take_for_exchange(self_pointer self, const Message& part) {
  auto& state = self->state;
  const bool was_complete = state.core->complete(),
             lacked_shares = state.core->lacks_shares();
  ship_all(self, state.core->take(part));
  if (lacked_shares && !state.core->lacks_shares())
    wake(self, maker);
  else if (!was_complete && state.core->complete())
    wake_maker(self);
}

/// A replica's update is granted again.
void go_on(self_pointer self, int replica) {
  if (replica == maker && std::exchange(self->state.measure_is_next, false))
    measure(self);
  else
    apply(self, replica);
}

/// Pushes to all servers; to the data replica's own nothing travels.
void push(self_pointer self) {
  auto& state = self->state;
  const auto what = state.core->begin_push();
  for (std::size_t d = 0; d < state.peers.servers->size(); ++d) {
    const auto& server = (*state.peers.servers)[d];
    auto receiver = state.where;
    receiver.data = static_cast<int>(d);
    if (receiver == state.where)
      send(self, server, what);
    else
      ship(self, state.shared,
           {traffic::gradients, state.core->push_bytes(d), state.where, receiver},
           server, what);
  }
}

/// Sends the new version to the other replicas, which wait for it.
void send_version(self_pointer self) {
  auto& state = self->state;
  auto receiver = state.where;
  for (std::size_t r = 1; r < state.peers.stages.size(); ++r) {
    receiver.replica = static_cast<int>(r);
    ship(self, state.shared,
         {traffic::parameters, state.core->version_bytes(), state.where, receiver},
         optimizer_shard_actor{self}, mail::version_there{receiver.replica});
  }
}

void finish(self_pointer self, const mail::ended& end) {
  auto& state = self->state;
  const int replica = end.what.replica;
  if (std::exchange(state.measuring, false)) {
    let_wait(self, replica, end.start, end.end, norm_measured);
    if (state.core->needs_norm())
      send(self, state.peers.shards.front(), state.core->norm());
    else
      push(self);
    return;
  }
  const auto ends_in = state.core->is_to_gather() ? version_made : nothing;
  ship_all(self, state.core->begin_gather());
  if (state.core->lacks_shares())
    return let_wait(self, replica, end.start, end.end, ends_in);
  if (replica == maker)
    send_version(self);
  state.core->applied();
  send(self, stage_of(self, replica), mail::updated{end.start, end.end, ends_in});
}

mail::waiting_for explain(self_pointer self) {
  const auto& state = self->state;
  mail::waiting_for result{state.name, state.core->missing(), ""};
  if (const auto& servers = state.core->awaited_servers(); !servers.empty()) {
    auto server = state.where;
    server.data = servers.front();
    result.on = state.shared.plan->server_of(server);
  }
  return result;
}

} // namespace

optimizer_shard_actor::behavior_type optimizer_shard(self_pointer self, props shared,
                                                     position where,
                                                     std::vector<device*> computers,
                                                     optimizer_memory memory) {
  report_failures(self);
  auto& state = self->state;
  state.name = shared.plan->optimizer_of(where);
  state.where = where;
  state.core = std::make_unique<optimizer_core>(*shared.plan, where, std::move(memory));
  state.shared = std::move(shared);
  state.computers = std::move(computers);
  auto& meter = *state.shared.meter;
  return {
    hear(self, meter, [self](const mail::update_request& part) { take(self, part); }),
    hear(self, meter, [self](const mail::update_go& go) { go_on(self, go.replica); }),
    hear(self, meter,
         [self](const mail::bucket_ready& b) { take_for_exchange(self, b); }),
    hear(self, meter,
         [self](const collective_message& m) { take_for_exchange(self, m); }),
    hear(self, meter,
         [self](const mail::norm_part& part) {
           if (const auto factor = self->state.core->gather(part))
             for (const auto& shard : self->state.peers.shards)
               send(self, shard, mail::clip_by{*factor});
         }),
    hear(self, meter,
         [self](const mail::clip_by& clip) {
           self->state.core->clip_by(clip.factor);
           if (self->state.core->has_servers())
             push(self);
           else
             wake(self, maker);
         }),
    hear(self, meter,
         [self](const mail::pulled& answer) {
           self->state.core->take(answer);
           if (!self->state.core->lacks_shares())
             wake(self, maker);
         }),
    hear(self, meter, [self](const mail::version_there& v) { wake(self, v.replica); }),
    hear(self, meter, [self](const mail::ended& e) { finish(self, e); }),
    hear(self, meter,
         [self](const mail::explain&) {
           send(self, self->state.peers.coordinator, explain(self));
         }),
    hear(self, meter,
         [self](const optimizer_shard_peers& peers) { self->state.peers = peers; }),
  };
}

} // namespace troupe
