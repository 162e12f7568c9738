#include "actors/optimizer_shard.hpp"

#include "actors/costs.hpp"
#include "actors/failure.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace troupe {

optimizer_core::optimizer_core(const run_plan& plan, int stage,
                               std::shared_ptr<optimizer> state)
  : stage_(stage),
    clip_(plan.work ? plan.work->optimizer.clip : 0),
    scope_(plan.work ? plan.work->optimizer.scope : clip_scope::stage),
    state_(std::move(state)),
    parts_(static_cast<std::size_t>(replicas_of(plan.sch.where))) {
  if (!plan.work)
    return;
  if (stage == 0)
    gathered_.resize(static_cast<std::size_t>(plan.dims.stages));
  const auto& first = plan.work->first_layers;
  for (int l = first[static_cast<std::size_t>(stage)];
       l < first[static_cast<std::size_t>(stage) + 1]; ++l)
    buckets_.push_back(plan.work->whole.layers[static_cast<std::size_t>(l)]->bucket());
}

bool optimizer_core::take(const mail::update_request& part) {
  parts_[static_cast<std::size_t>(part.what.replica)] = part;
  return missing() < 0;
}

int optimizer_core::missing() const {
  for (std::size_t r = 0; r < parts_.size(); ++r)
    if (!parts_[r])
      return static_cast<int>(r);
  return -1;
}

bool optimizer_core::needs_norm() const {
  return clip_ > 0 && scope_ == clip_scope::network;
}

// The sum over replicas is in the first one's buffers, and its samples count for all.
void optimizer_core::add_replicas() {
  if (std::exchange(added_, true))
    return;
  auto& sum = *parts_.front();
  for (std::size_t r = 1; r < parts_.size(); ++r) {
    sum.samples += parts_[r]->samples;
    for (std::size_t b = 0; b < buckets_.size(); ++b) {
      const auto* from = parts_[r]->gradients[b].data();
      auto* to = sum.gradients[b].data();
      for (std::int64_t i = 0; i < buckets_[b]; ++i)
        to[i] += from[i];
    }
  }
}

work optimizer_core::measure() {
  work result{.kind = op_count, .stage = stage_}; // no op of its own
  result.run = [this] {
    add_replicas();
    squares_ = state_->squares(readable(parts_.front()->gradients));
  };
  return result;
}

mail::norm_part optimizer_core::norm() const {
  return {stage_, parts_.front()->samples, squares_};
}

work optimizer_core::apply(int replica) {
  work result{.kind = static_cast<int>(op::update), .stage = stage_};
  if (!state_)
    return result;
  result.operations = update_operations(
    std::accumulate(buckets_.begin(), buckets_.end(), std::int64_t{0}));
  const bool makes = made_by_ < 0;
  if (makes)
    made_by_ = replica;
  const auto& part = *parts_[static_cast<std::size_t>(replica)];
  if (!makes) {
    const auto& made = *parts_[static_cast<std::size_t>(made_by_)];
    result.run = [this, &part, &made] {
      for (std::size_t b = 0; b < buckets_.size(); ++b)
        std::copy_n(made.to[b].data(), buckets_[b], part.to[b].data());
    };
    return result;
  }
  result.run = [this, &part] {
    add_replicas();
    const auto& sum = *parts_.front();
    double factor = factor_;
    if (clip_ > 0 && scope_ == clip_scope::stage) {
      const auto squares = state_->squares(readable(sum.gradients));
      const double norm =
        std::sqrt(std::accumulate(squares.begin(), squares.end(), 0.0));
      factor = clip_factor(clip_, norm / static_cast<double>(sum.samples));
    }
    state_->update(sum.samples, factor, readable(sum.gradients), readable(part.from),
                   writable(part.to));
  };
  return result;
}

void optimizer_core::applied() {
  if (++applied_ < static_cast<int>(parts_.size()))
    return;
  std::ranges::fill(parts_, std::nullopt);
  added_ = false;
  made_by_ = -1;
  applied_ = 0;
  factor_ = 1;
}

std::optional<double> optimizer_core::gather(const mail::norm_part& part) {
  gathered_[static_cast<std::size_t>(part.stage)] = part;
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

void apply(self_pointer self, int replica) {
  enqueue(self, self->state.core->apply(replica), {op::update, replica, 0, 0});
}

/// All parts are there: the replicas, which have been waiting, may go on.
void wake_all(self_pointer self) {
  for (const auto& replica : self->state.peers.stages)
    send(self, replica, mail::update_ready{});
}

// An update that is nobody else's business is made at once. Others wait until all parts
// are there, so that a rank gives all the parts it can before it makes the first
// update.
void take(self_pointer self, const mail::update_request& part) {
  auto& state = self->state;
  const int replica = part.what.replica;
  const bool complete = state.core->take(part);
  if (complete && state.core->needs_norm()) {
    state.measuring = true;
    enqueue(self, state.core->measure(), {op::update, replica, 0, 0});
  } else if (complete && state.peers.stages.size() == 1) {
    apply(self, replica);
  } else {
    send(self, stage_of(self, replica), mail::update_waits{0, 0});
    if (complete)
      wake_all(self);
  }
}

void finish(self_pointer self, const mail::ended& end) {
  auto& state = self->state;
  const auto& asker = stage_of(self, end.what.replica);
  if (std::exchange(state.measuring, false)) {
    send(self, asker, mail::update_waits{end.start, end.end});
    send(self, state.peers.shards.front(), state.core->norm());
  } else {
    state.core->applied();
    send(self, asker, mail::updated{end.start, end.end});
  }
}

mail::waiting_for explain(self_pointer self) {
  const int missing = self->state.core->missing();
  return {self->state.name,
          missing >= 0 ? "the gradients of replica " + std::to_string(missing) : "",
          ""};
}

} // namespace

optimizer_shard_actor::behavior_type
optimizer_shard(self_pointer self, props shared, int stage,
                std::vector<device*> computers,
                std::shared_ptr<optimizer> optimizer_of_stage) {
  auto& state = self->state;
  state.name = "optimizer of stage " + std::to_string(stage);
  state.core = std::make_unique<optimizer_core>(*shared.plan, stage,
                                                std::move(optimizer_of_stage));
  state.shared = std::move(shared);
  state.computers = std::move(computers);
  report_failures(self);
  auto& meter = *state.shared.meter;
  return {
    hear(self, meter, [self](const mail::update_request& part) { take(self, part); }),
    hear(self, meter, [self](const mail::update_go& go) { apply(self, go.replica); }),
    hear(self, meter,
         [self](const mail::norm_part& part) {
           if (const auto factor = self->state.core->gather(part))
             for (const auto& shard : self->state.peers.shards)
               send(self, shard, mail::clip_by{*factor});
         }),
    hear(self, meter,
         [self](const mail::clip_by& clip) {
           self->state.core->clip_by(clip.factor);
           wake_all(self);
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
