#include "actors/optimizer_shard.hpp"

#include "actors/costs.hpp"
#include "actors/failure.hpp"
#include "actors/ship.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace troupe {

namespace {

/// Adds the first `values` of one buffer to another's.
void add(const buffer& from, std::int64_t values, const buffer& to) {
  const auto* in = from.data();
  auto* out = to.data();
  for (std::int64_t i = 0; i < values; ++i)
    out[i] += in[i];
}

} // namespace

optimizer_core::optimizer_core(const run_plan& plan, position where,
                               optimizer_memory memory)
  : where_(where),
    share_(plan.share_of(where)),
    has_gradients_(plan.extent_of(shared_out::gradients)),
    computes_(plan.work.has_value()),
    has_servers_(plan.updates_are_by(update_by::servers)),
    clip_(plan.work ? plan.work->optimizer.clip : 0),
    scope_(plan.work ? plan.work->optimizer.scope : clip_scope::stage),
    tells_all_(where.tensor == 0 && where.data % plan.expert == 0),
    state_(std::move(memory.state)),
    shared_(std::move(memory.parameters)),
    parts_(static_cast<std::size_t>(replicas_of(plan.sch.where))) {
  if (plan.sums_at_update())
    sum_.emplace(plan, where, exchange_step::sum, std::move(memory.sums));
  if (plan.gathers_at_update())
    gather_.emplace(plan, where, exchange_step::gather, std::move(memory.gathers));
  if (has_servers_)
    for (int d = 0; d < plan.data; ++d) {
      auto server = where;
      server.data = d;
      push_bytes_.push_back(plan.state_values_of(server) * std::int64_t{sizeof(float)});
    }
  if (!plan.work)
    return;
  if (clip_ > 0) {
    norm_group_ = plan.norm_group(where);
    clipped_ = parts_of(plan.layers_of(where), share_);
  }
  gathered_.resize(norm_group_.size());
  for (const auto values : plan.buckets_of(where)) {
    gradients_.push_back(plan.held_of(shared_out::gradients, where, values));
    parameters_.push_back(plan.held_of(shared_out::parameters, where, values));
    operations_ += update_operations(share_.end(values) - share_.begin(values));
  }
}

std::vector<collective_message> optimizer_core::take(const mail::bucket_ready& part) {
  const auto b = static_cast<std::size_t>(part.bucket);
  ready_.resize(std::max(ready_.size(), b + 1));
  auto& bucket = ready_[b];
  bucket.of.resize(parts_.size());
  bucket.of[static_cast<std::size_t>(part.replica)] = part.gradients;
  if (++bucket.count < static_cast<int>(parts_.size()))
    return {};
  const auto all = std::exchange(bucket, {}).of;
  if (!state_)
    return sum_->begin(part.bucket, nullptr);
  for (std::size_t r = 1; r < all.size(); ++r)
    add(all[r], gradients_[b], all.front());
  return sum_->begin(part.bucket, all.front().data());
}

std::vector<collective_message> optimizer_core::take(const collective_message& part) {
  return sums(part) ? sum_->take(part) : gather_->take(part);
}

void optimizer_core::take(const mail::update_request& part) {
  parts_[static_cast<std::size_t>(part.what.replica)] = part;
}

bool optimizer_core::has_all_parts() const {
  return std::ranges::all_of(parts_, [](const auto& p) { return p.has_value(); });
}

bool optimizer_core::complete() const {
  return has_all_parts() && (!sum_ || sum_->done());
}

std::string optimizer_core::missing() const {
  for (std::size_t r = 0; r < parts_.size(); ++r)
    if (!parts_[r])
      return "the gradients of replica " + std::to_string(r);
  for (const auto* step : {&sum_, &gather_})
    if (*step)
      if (const auto other = (*step)->waits_for())
        return std::string{step == &sum_ ? "the gradients" : "the parameters"}
               + " of data replica " + std::to_string(*other);
  if (!servers_.empty())
    return "its share of the new version";
  return {};
}

std::vector<double> optimizer_core::squares(bool shards_only) const {
  return squares_of(clipped_, readable(parts_.front()->gradients), shards_only,
                    has_gradients_);
}

bool optimizer_core::needs_norm() const {
  return norm_group_.size() > 1
         || (clip_ > 0 && (has_servers_ || scope_ == clip_scope::network));
}

// The sum over replicas is in the first one's buffers, and its samples count for all.
// An exchange has added the buffers already.
void optimizer_core::add_replicas() {
  if (std::exchange(added_, true))
    return;
  auto& sum = *parts_.front();
  for (std::size_t r = 1; r < parts_.size(); ++r) {
    sum.samples += parts_[r]->samples;
    for (std::size_t b = 0; b < gradients_.size() && !sum_; ++b)
      add(parts_[r]->gradients[b], gradients_[b], sum.gradients[b]);
  }
}

work optimizer_core::measure() {
  work result{.kind = op_count, .stage = where_.stage}; // no op of its own
  result.run = [this] {
    add_replicas();
    if (clip_ > 0)
      squares_ = squares(!tells_all_);
  };
  return result;
}

mail::norm_part optimizer_core::norm() const {
  return {where_, parts_.front()->samples, squares_};
}

mail::push optimizer_core::begin_push() {
  const auto& sum = *parts_.front();
  made_by_ = 0;
  servers_.resize(push_bytes_.size());
  std::iota(servers_.begin(), servers_.end(), 0);
  return {where_.data, sum.samples, factor_, sum.gradients, sum.to};
}

work optimizer_core::apply(int replica) {
  work result{.kind = static_cast<int>(op::update), .stage = where_.stage};
  if ((gathering_ || has_servers_) && replica == made_by_)
    result.kind = op_count; // it has run already
  if ((!computes_ && !shared_) || result.kind == op_count) {
    made_by_ = made_by_ < 0 ? replica : made_by_;
    return result;
  }
  result.operations = operations_;
  const bool makes = made_by_ < 0;
  if (makes)
    made_by_ = replica;
  const auto& part = *parts_[static_cast<std::size_t>(replica)];
  if (!makes) {
    const auto& made = *parts_[static_cast<std::size_t>(made_by_)];
    result.run = [this, &part, &made] {
      for (std::size_t b = 0; b < parameters_.size(); ++b)
        std::copy_n(made.to[b].data(), parameters_[b], part.to[b].data());
    };
    return result;
  }
  result.run = [this, &part] {
    add_replicas();
    const auto& sum = *parts_.front();
    double factor = factor_;
    if (clip_ > 0 && !needs_norm()) {
      const auto parts = squares(false);
      const double norm = std::sqrt(std::accumulate(parts.begin(), parts.end(), 0.0));
      factor = clip_factor(clip_, norm / static_cast<double>(sum.samples));
    }
    if (shared_) {
      shared_->update(where_.data, sum.samples, factor, sum.gradients, state_.get());
      return shared_->read(where_.data, part.to);
    }
    state_->update(sum.samples, factor, readable(sum.gradients), readable(part.from),
                   writable(part.to));
  };
  return result;
}

std::vector<collective_message> optimizer_core::begin_gather() {
  std::vector<collective_message> out;
  if (!gather_ || std::exchange(gathering_, true))
    return out;
  for (int b = 0; b < gather_->buckets(); ++b) {
    auto* const to = state_ ? parts_[static_cast<std::size_t>(made_by_)]
                                ->to[static_cast<std::size_t>(b)]
                                .data()
                            : nullptr;
    for (auto& message : gather_->begin(b, to))
      out.push_back(std::move(message));
  }
  return out;
}

void optimizer_core::applied() {
  if (++applied_ < static_cast<int>(parts_.size()))
    return;
  std::ranges::fill(parts_, std::nullopt);
  added_ = false;
  made_by_ = -1;
  applied_ = 0;
  factor_ = 1;
  gathering_ = false;
  for (auto* step : {&sum_, &gather_})
    if (*step)
      (*step)->next_update();
}

std::optional<double> optimizer_core::gather(const mail::norm_part& part) {
  const auto place = std::ranges::find(norm_group_, part.of) - norm_group_.begin();
  gathered_[static_cast<std::size_t>(place)] = part;
  if (!std::ranges::all_of(gathered_, [](const auto& p) { return p.has_value(); }))
    return {};
  double sum = 0;
  for (const auto& p : gathered_)
    for (const double squares : p->squares)
      sum += squares;
  const auto samples = static_cast<double>(gathered_.front()->samples);
  std::ranges::fill(gathered_, std::nullopt);
  return clip_factor(clip_, std::sqrt(sum) / samples);
}

namespace {

using self_pointer = optimizer_shard_actor::stateful_pointer<optimizer_shard_state>;

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
              nanoseconds end = 0) {
  self->state.waiting.push_back(replica);
  if (ranks_wait(self))
    send(self, stage_of(self, replica), mail::update_waits{start, end});
}

void apply(self_pointer self, int replica) {
  if (self->state.core->lacks_shares())
    return let_wait(self, replica);
  enqueue(self, self->state.core->apply(replica), {op::update, replica, 0, 0});
}

/// What replicas have waited for is there.
void wake(self_pointer self) {
  for (const int replica : std::exchange(self->state.waiting, {}))
    if (ranks_wait(self))
      send(self, stage_of(self, replica), mail::update_ready{});
    else
      apply(self, replica);
}

void measure(self_pointer self, int replica) {
  self->state.measuring = true;
  enqueue(self, self->state.core->measure(), {op::update, replica, 0, 0});
}

// An update that is nobody else's business is made at once. Others wait until all parts
// are there, so that a rank gives all the parts it can before it makes the first
// update.
void take(self_pointer self, const mail::update_request& part) {
  auto& state = self->state;
  const int replica = part.what.replica;
  state.core->take(part);
  const bool complete = state.core->complete();
  if (complete && (state.core->needs_norm() || state.core->has_servers())) {
    measure(self, replica);
  } else if (complete && state.peers.stages.size() == 1) {
    apply(self, replica);
  } else {
    let_wait(self, replica);
    if (complete)
      wake(self);
  }
}

/// Sends to other data replicas.
void ship_all(self_pointer self, std::vector<collective_message> all) {
  auto& state = self->state;
  for (auto& what : all) {
    const auto replica = state.core->receiver_of(what);
    const auto& to = (*state.peers.others)[static_cast<std::size_t>(replica)];
    const auto kind = state.core->sums(what) ? traffic::gradients : traffic::parameters;
    const auto bytes = what.bytes();
    ship(self, state.shared, kind, bytes, *state.to_others, to, std::move(what));
  }
}

/// Takes what the exchange with other data replicas brings. If the update has been
/// waiting for that alone, a replica may go on and measure the norm, or all and update.
template <class Message>
void take_for_exchange(self_pointer self, const Message& part) {
  auto& state = self->state;
  const bool was_complete = state.core->complete(),
             lacked_shares = state.core->lacks_shares();
  ship_all(self, state.core->take(part));
  if (lacked_shares && !state.core->lacks_shares())
    return wake(self);
  if (was_complete || !state.core->complete())
    return;
  state.norm_is_next = state.core->needs_norm();
  if (!state.norm_is_next)
    return wake(self);
  const int replica = state.waiting.back(); // one of them is enough
  state.waiting.pop_back();
  send(self, stage_of(self, replica), mail::update_ready{});
}

/// A replica's update is granted again.
void go_on(self_pointer self, int replica) {
  if (std::exchange(self->state.norm_is_next, false))
    measure(self, replica);
  else
    apply(self, replica);
}

/// Pushes to all servers; to the data replica's own nothing travels.
void push(self_pointer self) {
  auto& state = self->state;
  const auto what = state.core->begin_push();
  for (std::size_t d = 0; d < state.peers.servers->size(); ++d) {
    const auto& server = (*state.peers.servers)[d];
    if (static_cast<int>(d) == what.data)
      send(self, server, what);
    else
      ship(self, state.shared, traffic::gradients, state.core->push_bytes(d),
           *state.to_others, server, what);
  }
}

void finish(self_pointer self, const mail::ended& end) {
  auto& state = self->state;
  const int replica = end.what.replica;
  if (std::exchange(state.measuring, false)) {
    let_wait(self, replica, end.start, end.end);
    if (state.core->needs_norm())
      send(self, state.peers.shards.front(), state.core->norm());
    else
      push(self);
    return;
  }
  ship_all(self, state.core->begin_gather());
  if (state.core->lacks_shares())
    return let_wait(self, replica, end.start, end.end);
  wake(self); // if the shares came at once, a replica may have waited for that
  state.core->applied();
  send(self, stage_of(self, replica), mail::updated{end.start, end.end});
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
  auto& state = self->state;
  state.name = shared.plan->optimizer_of(where);
  state.where = where;
  state.core = std::make_unique<optimizer_core>(*shared.plan, where, std::move(memory));
  state.to_others.emplace(shared.plan->link);
  state.shared = std::move(shared);
  state.computers = std::move(computers);
  report_failures(self);
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
             wake(self);
         }),
    hear(self, meter,
         [self](const mail::pulled& answer) {
           self->state.core->take(answer);
           if (!self->state.core->lacks_shares())
             wake(self);
         }),
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
