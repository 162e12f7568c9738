// SPDX-License-Identifier: BSD-3-Clause
#include "actors/rank/scheduler_core.hpp"

#include "plan/stage_rules.hpp"

#include <algorithm>
#include <utility>
#include <variant>

namespace troupe {

scheduler_core::scheduler_core(std::shared_ptr<const run_plan> plan,
                               std::optional<int> rank, int depth)
  : plan_(std::move(plan)), rank_(rank), depth_(depth) {
  if (!rank_)
    return;
  hosted_ = plan_->hosted_by(*rank_);
  order_ = make_order(plan_->sch, plan_->dims, plan_->pipe_rank(*rank_));
  passes_meet_ = std::ranges::any_of(
    hosted_, [this](const position& p) { return passes_meet(*plan_, p.stage); });
  if (const int every = plan_->copies.pause_every(); every > 0) {
    next_checkpoint_ = every - plan_->dims.batches_before % every;
    order_->pause_after(next_checkpoint_);
  }
  const auto& front = hosted_.front();
  if (plan_->copies.evaluate_every == 0 || front.data > 0)
    return;
  const int share = plan_->dims.microbatches / plan_->directions();
  backwards_to_evaluation_ = std::int64_t{plan_->copies.evaluate_every} * share;
  for (const auto& where : hosted_) // backwards of the highest stage come first
    if (where.direction == 0)
      evaluated_stage_ = where.stage;
  copies_ = snapshots_of(*plan_, {0, 0, evaluated_stage_, front.tensor});
  backwards_ = plan_->dims.batches_before % plan_->copies.evaluate_every * share;
}

void scheduler_core::handle(const mail::arrived& a) {
  if (a.sender.kind == role::expert || a.sender.kind == role::parameter_server)
    unordered_.push_back({a.action, a.sender});
  else
    waiting_.add(a.action);
}

bool scheduler_core::is_in_turn(const mail::done& d) const {
  const auto match = std::ranges::find(in_turn_, d.measured.action);
  return match == in_turn_.begin() || match == in_turn_.end();
}

void scheduler_core::handle(const mail::done& d) {
  --running_;
  if (!in_turn_.empty() && in_turn_.front() == d.measured.action)
    in_turn_.erase(in_turn_.begin());
  if (d.sender.kind == role::expert || d.sender.kind == role::parameter_server)
    return;
  order_->ended(d.measured.action);
}

void scheduler_core::handle(const mail::resume& p) {
  held_ = false;
  evaluated_ = p.evaluated;
}

std::optional<int> scheduler_core::at_checkpoint() {
  if (next_checkpoint_ == 0 || running_ > 0 || !order_->paused())
    return {};
  return next_checkpoint_;
}

void scheduler_core::handle(const mail::resume_from_checkpoint&) {
  next_checkpoint_ += plan_->copies.pause_every();
  order_->pause_after(next_checkpoint_);
}

bool scheduler_core::ahead_of_evaluations() const {
  return backwards_to_evaluation_ > 0
         && backwards_ / backwards_to_evaluation_ - evaluated_ >= copies_;
}

void scheduler_core::handle(const mail::paused& p) {
  --running_;
  if (p.measured.action.op == op::update)
    paused_updates_.push_back({p.measured.action, p.sender});
  else
    paused_ = p.measured.action;
}

// An update reads results of earlier passes, and a paused update goes before the
// program. A pass that meets other ranks may pause. Each such action is granted alone.
// A local rule's choices are also granted alone: each depends on arrivals and ends.
bool scheduler_core::has_capacity() const {
  return running_ == 0
         || (running_ < depth_ && running_ == std::ssize(in_turn_) && !has_choice());
}

/// An action of the order is granted for the first time.
void scheduler_core::begin(const action& a) {
  if (a.op == op::forward && a.stage == plan_->dims.stages - 1)
    waiting_.add({op::backward, a.direction, a.stage, a.microbatch}); // with the loss
  if (a.direction == 0 && a.stage == evaluated_stage_ && adds_gradient(a.op))
    ++backwards_;
}

// A local rule grants nothing else while a stage updates. While an action is paused,
// updates are still granted: other ranks may wait for an update.
std::optional<action> scheduler_core::next_by_order() {
  const bool only_updates =
    paused_ || (plan_->sch.local_rule() && !paused_updates_.empty());
  if (paused_ && waiting_.remove(*paused_))
    return std::exchange(paused_, {});
  if (!only_updates) {
    if (running_ > 0 && ahead_of_evaluations())
      return {};
    const auto next =
      order_->next(waiting_, running_ > 0             ? may_begin::passes
                             : ahead_of_evaluations() ? may_begin::updates
                                                      : may_begin::anything);
    if (next)
      begin(*next);
    return next;
  }
  const auto update = waiting_.lowest(op::update);
  if (update)
    waiting_.remove(*update);
  return update;
}

std::optional<scheduler_core::granted> scheduler_core::grant() {
  if (held_ || !has_capacity())
    return {};
  if (!unordered_.empty()) {
    const auto next = unordered_.front();
    unordered_.erase(unordered_.begin());
    ++running_;
    return next;
  }
  const auto next = rank_ ? next_by_order() : std::nullopt;
  if (!next)
    return {};
  ++running_;
  granted result{*next, performer_of(*next)};
  if (next->pair == in_pair::first)
    result.pair = order_->awaited();
  if (depth_ > 1 && next->op != op::update && !passes_meet_) {
    result.turn = turns_++;
    in_turn_.push_back(*next);
  }
  std::erase_if(paused_updates_,
                [&](const granted& u) { return u.granted_action == *next; });
  return result;
}

position scheduler_core::position_of(const action& a) const {
  return {hosted_.front().data, a.direction, a.stage, hosted_.front().tensor};
}

/// The performer that runs an action: its stage, or for a paused update the optimizer
/// shard.
performer scheduler_core::performer_of(const action& a) const {
  const auto paused = std::ranges::find(paused_updates_, a, &granted::granted_action);
  return paused != paused_updates_.end() ? paused->receiver
                                         : performer{role::stage, position_of(a)};
}

mail::waiting_for scheduler_core::explain() {
  if (!rank_)
    return {};
  const auto name = "scheduler of rank " + std::to_string(*rank_);
  if (finished())
    return {name, "", ""};
  if (paused_)
    return {name, to_string(*paused_, true) + " to resume",
            plan_->name_of(position_of(*paused_))};
  if (running_ > 0)
    return {name, "an action to end", plan_->name_of(hosted_.front())};
  const auto next = order_->awaited();
  if (!next) {
    const auto backward = waiting_.lowest(op::backward),
               ready_action = backward ? backward : waiting_.lowest(op::forward);
    const bool refused =
      ready_action && std::holds_alternative<user_rule>(plan_->sch.order);
    return {name,
            refused ? "another input, as the rank's rule did not choose "
                        + to_string(*ready_action, true)
                    : "any input",
            plan_->name_of(hosted_.front())};
  }
  const bool last = next->stage == plan_->dims.stages - 1, first = next->stage == 0;
  auto maker = position_of(*next);
  if (next->op == op::forward && !first)
    --maker.stage;
  if (next->op != op::forward && next->op != op::update && !last)
    ++maker.stage;
  const auto input = "the input of " + to_string(*next, true);
  if (next->op == op::forward && first)
    return {name, input, plan_->source_of(maker)};
  return {name, input, "scheduler of rank " + std::to_string(plan_->rank_of(maker))};
}

} // namespace troupe
