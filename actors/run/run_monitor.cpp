// SPDX-License-Identifier: BSD-3-Clause
#include "actors/run/run_monitor.hpp"

#include "actors/mail/relay_ledger.hpp"
#include "plan/replica_rules.hpp"
#include "plan/stage_experts.hpp"

#include <algorithm>
#include <utility>

namespace troupe {

namespace {

/// A disk or a network may be slow; actions have been measured.
constexpr int reader_timeouts = 10;

/// The names of all actors that answer when asked for the thing that each waits for.
std::vector<std::string> names_of(const run_plan& plan) {
  std::vector<std::string> result;
  for (int rank = 0; rank < plan.ranks(); ++rank) {
    result.push_back("scheduler of rank " + std::to_string(rank));
    for (const auto& where : plan.hosted_by(rank)) {
      result.push_back(plan.name_of(where));
      if (where.stage == 0)
        result.push_back(plan.source_of(where));
      if (where.direction == 0)
        result.push_back(plan.optimizer_of(where));
      if (where.direction == 0 && updates_are_by(plan, update_by::servers))
        result.push_back(plan.server_of(where));
      if (plan.has_relays && where.stage + 1 < plan.dims.stages)
        result.push_back(name_of_relay(plan.replica_at(where), where.stage));
      for (const int number : experts_of(plan, where.stage))
        if (host_of(plan, number, where) == where)
          result.push_back(name_of_expert(plan, number, where));
    }
  }
  return result;
}

/// The user code that may keep an actor from an answer, in words.
std::string why_silent(const run_plan& plan) {
  return plan.user_exchange
           ? ": a function of the user_exchange may not have returned, and runs on the "
             "thread of the stage's optimizer"
           : "";
}

} // namespace

run_monitor::run_monitor(const run_plan& plan, const wall_clock& clock)
  : plan_(plan), clock_(clock) {
  waited_.pause();
}

std::string run_monitor::text_of(const task& current_task, position where) const {
  const auto suffix = " of " + plan_.name_of(where);
  if (current_task.kind == op_count)
    return "summing or copying arrays of an update" + suffix;
  const auto op = static_cast<troupe::op>(current_task.kind);
  return "running "
         + (op == op::update
              ? "an update"
              : to_string({op, where.direction, where.stage, current_task.microbatch}))
         + suffix;
}

occupation& run_monitor::add(std::string name,
                             std::function<std::string(const task&)> doing,
                             int allowed_timeouts) {
  auto& result = occupations_.emplace_back(clock_);
  watched_tasks_.push_back(
    {std::move(name), &result, std::move(doing), allowed_timeouts});
  return result;
}

occupation& run_monitor::device_of(int rank) {
  return add("rank " + std::to_string(rank), [this, rank](const task& current_task) {
    const auto hosted = plan_.hosted_by(rank);
    const auto where = std::ranges::find(hosted, current_task.stage, &position::stage);
    return text_of(current_task, *where);
  });
}

occupation& run_monitor::device_of_server(position where) {
  return add(plan_.server_of(where), [this, where](const task& current_task) {
    return text_of(current_task, where);
  });
}

occupation& run_monitor::reader_of(position first) {
  return add(
    plan_.source_of(first),
    [](const task& current_task) {
      return "reading microbatch " + std::to_string(current_task.microbatch);
    },
    reader_timeouts);
}

occupation& run_monitor::group_of(position member, const std::string& activity) {
  return add("the GPU of rank " + std::to_string(plan_.rank_of(member)),
             [activity](const task&) { return activity; });
}

void run_monitor::begin(run_status& status, std::function<void()> request_explanations,
                        std::function<void()> help, distant_watch* remote_watch) {
  watch_here();
  auto look_everywhere = [this, remote_watch] {
    return remote_watch != nullptr ? look_at(*remote_watch) : look();
  };
  auto all_at_work = [this, remote_watch] {
    return remote_watch != nullptr ? remote_watch->at_work() : at_work();
  };
  watchdog_ = std::make_unique<stall_watchdog>(
    plan_.machine.stall_timeout, status,
    stall_watchdog::controls{.look = std::move(look_everywhere),
                             .at_work = std::move(all_at_work),
                             .request_explanations = std::move(request_explanations),
                             .help = std::move(help),
                             .asked = names_of(plan_),
                             .silence = why_silent(plan_)});
}

/// The verdict of the other processes. But a run has stalled only if the others say so
/// while this process waits for them, as long as the timeout.
stall_rule::verdict run_monitor::look_at(distant_watch& remote_watch) {
  const auto verdict = remote_watch.look();
  const auto waited = waited_awake();
  if (verdict != stall_rule::verdict::stalled)
    stalled_since_ = waited;
  const auto timeout = std::chrono::nanoseconds{plan_.machine.stall_timeout}.count();
  return verdict == stall_rule::verdict::stalled && waited - stalled_since_ < timeout
           ? stall_rule::verdict::slow
           : verdict;
}

bool run_monitor::is_stuck() {
  return rule_ && look() == stall_rule::verdict::stalled && !at_work().empty();
}

} // namespace troupe
