#include "actors/rank/scheduler.hpp"

#include "actors/mail/failure.hpp"
#include "actors/pipeline/stage_core.hpp"
#include "actors/pipeline/stage_pools.hpp"

#include <algorithm>
#include <utility>

namespace troupe {

scheduler_core::scheduler_core(std::shared_ptr<const run_plan> plan, int rank,
                               int depth)
  : plan_(std::move(plan)),
    rank_(rank),
    depth_(depth),
    hosted_(plan_->hosted_by(rank)),
    order_(make_order(plan_->sch, plan_->dims, plan_->pipe_rank(rank))) {
  const auto& front = hosted_.front();
  if (plan_->evaluate_every == 0 || front.data > 0)
    return;
  const int share = plan_->dims.microbatches / plan_->directions();
  backwards_to_evaluation_ = std::int64_t{plan_->evaluate_every} * share;
  for (const auto& where : hosted_) // the last backwards first
    if (where.replica == 0)
      evaluated_stage_ = where.stage;
  copies_ = pools_of(*plan_, {0, 0, evaluated_stage_, front.tensor}).snapshots;
}

void scheduler_core::hear(const mail::done& d) {
  --running_;
  const auto& a = d.what.what;
  order_->ended(a);
  if (a.replica == 0 && a.stage == evaluated_stage_
      && (a.what == op::backward || a.what == op::weight_gradient))
    ++backwards_;
}

void scheduler_core::hear(const mail::proceed& p) {
  held_ = false;
  evaluated_ = p.evaluated;
}

bool scheduler_core::ahead_of_evaluations() const {
  return backwards_to_evaluation_ > 0
         && backwards_ / backwards_to_evaluation_ - evaluated_ >= copies_;
}

void scheduler_core::hear(const mail::paused& p) {
  --running_;
  if (p.what.what.what == op::update)
    waiting_updates_.push_back(p.what.what);
  else
    paused_ = p.what.what;
}

std::optional<int> scheduler_core::grant_expert() {
  if (held_ || running_ >= depth_ || experts_.empty())
    return {};
  const int next = experts_.front();
  experts_.pop_front();
  ++running_;
  return next;
}

std::optional<action> scheduler_core::grant() {
  if (held_ || running_ >= depth_)
    return {};
  std::optional<action> next;
  if (!paused_)
    next = order_->next(waiting_, ahead_of_evaluations());
  else if (waiting_.take(*paused_))
    next = std::exchange(paused_, {});
  else if (next = waiting_.lowest(op::update); next) // that may be what others wait for
    waiting_.take(*next);
  if (next) {
    ++running_;
    std::erase(waiting_updates_, *next);
  }
  return next;
}

std::size_t scheduler_core::stage_of(const action& a) const {
  const auto found =
    std::ranges::find(hosted_, hosted_stage{a.replica, a.stage}, &position::hosted);
  return static_cast<std::size_t>(found - hosted_.begin());
}

mail::waiting_for scheduler_core::explain() {
  const auto name = "scheduler of rank " + std::to_string(rank_);
  if (finished())
    return {name, "", ""};
  if (paused_)
    return {name, to_string(*paused_, true) + " to go on",
            plan_->name_of(hosted_[stage_of(*paused_)])};
  if (running_ > 0)
    return {name, "an action to end", plan_->name_of(hosted_.front())};
  const auto next = order_->awaited();
  if (!next)
    return {name, "anything to arrive", plan_->name_of(hosted_.front())};
  const bool last = next->stage == plan_->dims.stages - 1, first = next->stage == 0;
  position maker{hosted_.front().data, next->replica, next->stage,
                 hosted_.front().tensor};
  if (next->what == op::forward && !first)
    --maker.stage;
  if (next->what != op::forward && next->what != op::update && !last)
    ++maker.stage;
  const auto what = "the input of " + to_string(*next, true);
  if (next->what == op::forward && first)
    return {name, what, plan_->source_of(maker)};
  return {name, what, "scheduler of rank " + std::to_string(plan_->rank_of(maker))};
}

namespace {

using self_pointer = scheduler_actor::stateful_pointer<scheduler_state>;

constexpr std::size_t samples_at_once = 64;

template <class Handle, class Message>
void send(self_pointer self, const Handle& to, Message&& what) {
  tell(self, *self->state.shared.meter, to, std::forward<Message>(what));
}

void send_samples(self_pointer self) {
  auto& state = self->state;
  if (!state.samples.empty())
    send(self, state.peers.recorder,
         mail::samples{state.rank, std::exchange(state.samples, {})});
}

/// Keeps a sample for the recorder, as long as that keeps those of this rank.
void keep(self_pointer self, const sample& what) {
  auto& state = self->state;
  const auto& plan = *state.shared.plan;
  if (!plan.keep_record && !plan.model_times && state.noted > plan.keep_first)
    return;
  ++state.noted;
  state.samples.push_back(what);
  if (state.samples.size() >= samples_at_once)
    send_samples(self);
}

void note(self_pointer self, const sample& what) {
  self->state.sums.add(what);
  keep(self, what);
}

void send_all(self_pointer self) {
  send_samples(self);
  send(self, self->state.peers.recorder,
       mail::sums{self->state.rank, self->state.sums});
}

void grant(self_pointer self) {
  auto& state = self->state;
  while (const auto expert = state.core->grant_expert())
    send(self, state.peers.experts[static_cast<std::size_t>(*expert)],
         mail::expert_run{});
  while (const auto next = state.core->grant())
    send(self, state.peers.stages[state.core->stage_of(*next)], mail::run{*next});
  if (!state.said_finished && state.core->finished()) {
    state.said_finished = true;
    send_all(self);
    send(self, state.peers.coordinator, mail::finished{state.rank});
  }
}

/// Who has a choice looks at all that has arrived in an instant; others need not wait.
void consider(self_pointer self) {
  auto& state = self->state;
  auto* const clock = state.shared.clock;
  if (clock == nullptr || !state.core->has_choice())
    return grant(self);
  if (std::exchange(state.asked_to_decide, true))
    return;
  clock->at_end_of_instant(
    [meter = state.shared.meter, me = scheduler_actor{self}] {
      post(*meter, me, mail::decide{});
    },
    end_of_instant::decisions);
}

void say_if_at_rest(self_pointer self) {
  auto& state = self->state;
  if (!state.core->at_rest())
    return;
  send_all(self);
  send(self, state.peers.coordinator, mail::held{state.rank});
}

} // namespace

scheduler_actor::behavior_type scheduler(self_pointer self, props shared, int rank,
                                         int depth) {
  report_failures(self);
  auto& state = self->state;
  state.name = "scheduler of rank " + std::to_string(rank);
  state.core = std::make_unique<scheduler_core>(shared.plan, rank, depth);
  state.shared = std::move(shared);
  state.rank = rank;
  auto& meter = *state.shared.meter;
  return {
    hear(self, meter,
         [self](const mail::arrived& a) {
           self->state.core->hear(a);
           consider(self);
         }),
    hear(self, meter,
         [self](const mail::done& d) {
           note(self, d.what);
           self->state.core->hear(d);
           say_if_at_rest(self);
           consider(self);
         }),
    hear(self, meter,
         [self](const mail::paused& p) {
           if (p.what.end > p.what.start)
             note(self, p.what);
           else if (self->state.shared.plan->model_times)
             keep(self, p.what);
           self->state.core->hear(p);
           say_if_at_rest(self);
           consider(self);
         }),
    hear(self, meter,
         [self](const mail::expert_arrived& e) {
           self->state.core->hear(e);
           consider(self);
         }),
    hear(self, meter,
         [self](const mail::expert_done& d) {
           note(self, d.what);
           self->state.core->hear(d);
           say_if_at_rest(self);
           consider(self);
         }),
    hear(self, meter,
         [self](const mail::decide&) {
           self->state.asked_to_decide = false;
           grant(self);
         }),
    hear(self, meter,
         [self](const mail::hold&) {
           self->state.core->hold();
           say_if_at_rest(self);
         }),
    hear(self, meter,
         [self](const mail::proceed& p) {
           self->state.core->hear(p);
           consider(self);
         }),
    hear(self, meter,
         [self](const mail::stop&) {
           send(self, self->state.peers.coordinator, self->state.core->freeze());
         }),
    hear(self, meter,
         [self](const mail::stop_after& s) {
           self->state.core->hear(s);
           consider(self);
         }),
    hear(self, meter,
         [self](const mail::explain&) {
           send(self, self->state.peers.coordinator, self->state.core->explain());
         }),
    hear(self, meter,
         [self](const scheduler_peers& peers) {
           self->state.peers = peers;
           consider(self);
         }),
  };
}

} // namespace troupe
