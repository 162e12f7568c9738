// SPDX-License-Identifier: BSD-3-Clause
#include "actors/pipeline/stage_core.hpp"

#include <algorithm>
#include <utility>

namespace troupe {

stage_core::stage_core(std::shared_ptr<const run_plan> plan, position where,
                       stage_port& port, stage_work work,
                       std::shared_ptr<stage_meetings> meetings)
  : stage_{std::move(plan), where, port, std::move(work), std::move(meetings)},
    name_(stage_.plan->name_of(where)) {
  stage_.meetings->yield([&port](requested_sum s) { port.sum(std::move(s)); });
}

void stage_core::arrive_if_possible(int microbatch) {
  if (!stage_.work.inputs->has_inputs(microbatch))
    return;
  if (stage_.ledger.can_forward(microbatch))
    stage_.port.arrived(action_of(op::forward, microbatch));
  else
    unversioned_.push_back(microbatch);
}

void stage_core::receive(const activation& input) {
  stage_.work.inputs->put_input(input.header.microbatch, input.payload);
  if (input.pending_write)
    input_writers_[{op::forward, input.header.microbatch}] = input.pending_write;
  arrive_if_possible(input.header.microbatch);
}

void stage_core::receive(const labels& input) {
  stage_.work.inputs->put_labels(input.header.microbatch, input.payload);
  arrive_if_possible(input.header.microbatch);
}

void stage_core::receive(const gradient& input) {
  stage_.work.inputs->put_gradient(input.header.microbatch, input.payload);
  if (input.pending_write)
    input_writers_[{op::backward, input.header.microbatch}] = input.pending_write;
  stage_.port.arrived(action_of(op::backward, input.header.microbatch));
}

void stage_core::receive(mail::meeting_message message) {
  if (const auto* last = std::get_if<mail::updated>(&message.body))
    return end_update(*last);
  stage_.port.send_all(stage_.meetings->receive(std::move(message)));
  for (auto& pass : passes_)
    pass.poll();
}

void stage_core::run(const action& a, std::int64_t turn,
                     const std::optional<action>& pair) {
  if (a.op == op::update)
    return stage_.updates.begin(a);
  auto* pass = find(a);
  if (pass == nullptr) {
    stage_.updates.copy_if_due();
    if (a.op == op::forward && stage_.is_first())
      stage_.port.demand();
    auto writer =
      input_writers_.extract({goes_back(a.op) ? op::backward : a.op, a.microbatch});
    pass = &free_pass();
    pass->begin(a, turn, pair, writer ? std::move(writer.mapped()) : nullptr);
  }
  pass->resume(turn);
}

/// Returns the pass that runs an action; null if `a` is not under way.
granted_pass* stage_core::find(const action& a) {
  const auto pass =
    std::ranges::find_if(passes_, [&](const auto& p) { return p.runs(a); });
  return pass != passes_.end() ? &*pass : nullptr;
}

/// Returns an object for the next pass; makes an object if all are under way.
granted_pass& stage_core::free_pass() {
  const auto pass =
    std::ranges::find_if(passes_, [](const auto& p) { return !p.under_way(); });
  return pass != passes_.end() ? *pass : passes_.emplace_back(stage_);
}

void stage_core::launched(const mail::launched& l) {
  find(l.action)->launched(l.end);
}

void stage_core::ended(const mail::ended& e) {
  if (e.action.op == op::update) {
    stage_.updates.end_copy();
    return report_if_updated();
  }
  const auto measured = find(e.action)->ended(e);
  if (!measured)
    return;
  if (std::ranges::any_of(passes_, &granted_pass::under_way))
    stage_.updates.copy_if_due(); // passes that began before the copy was due
  stage_.port.done(*measured);
}

// Forwards that waited for the new version are announced as arrived before the
// scheduler is notified of the update's end.
void stage_core::end_update(const mail::updated& last) {
  stage_.updates.end(last);
  std::erase_if(unversioned_, [&](int microbatch) {
    if (!stage_.ledger.can_forward(microbatch))
      return false;
    stage_.port.arrived(action_of(op::forward, microbatch));
    return true;
  });
  report_if_updated();
}

void stage_core::report_if_updated() {
  if (stage_.updates.take_over())
    stage_.port.done(stage_.updates.measured());
}

mail::waiting_for stage_core::explain() const {
  const auto& plan = *stage_.plan;
  const auto& updates = stage_.updates;
  const auto neighbour = [&](int step) {
    auto where = stage_.where;
    where.stage += step;
    return plan.name_of(where);
  };
  const auto first = std::ranges::min_element(passes_, {}, [](const auto& p) {
    return std::pair{!p.under_way(), p.turn()};
  });
  if (first != passes_.end())
    if (const auto waits = first->explain(name_))
      return *waits;
  if (updates.copies())
    return {name_, "its device to copy its parameters", ""};
  if (updates.under_way())
    return {name_, "its update", plan.optimizer_of(stage_.where)};
  const auto& ledger = stage_.ledger;
  if (ledger.held() > 0 && !stage_.is_last())
    return {name_, "the gradient of microbatch " + std::to_string(ledger.oldest_held()),
            neighbour(1)};
  if (updates.has_all_gradients())
    return {name_, "", ""};
  if (ledger.held() > 0)
    return {name_, "its scheduler to start its backward", ""};
  return {name_, "an activation",
          stage_.is_first() ? plan.source_of(stage_.where) : neighbour(-1)};
}

} // namespace troupe
