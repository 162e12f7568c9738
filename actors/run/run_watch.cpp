// SPDX-License-Identifier: BSD-3-Clause
#include "actors/run/run_watch.hpp"

#include "actors/mail/relay_ledger.hpp"

#include <algorithm>
#include <utility>

namespace troupe {

namespace {

/// A disk or a network may be slow; actions have been measured.
constexpr int patience_with_readers = 10;

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
      if (where.direction == 0 && plan.updates_are_by(update_by::servers))
        result.push_back(plan.server_of(where));
      if (plan.has_relays && where.stage + 1 < plan.dims.stages)
        result.push_back(name_of_relay(plan.replica_at(where), where.stage));
      for (const int number : plan.experts_of(where.stage))
        if (plan.host_of(number, where) == where)
          result.push_back(plan.name_of_expert(number, where));
    }
  }
  return result;
}

/// The user code that may keep an actor from an answer, in words.
std::string why_silent(const run_plan& plan) {
  return plan.own_exchange
           ? ": a function of an own meeting runs on the thread of its stage's "
             "optimizer, and may not have returned"
           : "";
}

} // namespace

run_watch::run_watch(const run_plan& plan, const wall_clock& clock)
  : plan_(plan), clock_(clock) {
  waited_.pause();
}

std::string run_watch::text_of(const task& what, position where) const {
  const auto of = " of " + plan_.name_of(where);
  if (what.kind == op_count)
    return "summing or copying what an update needs or made" + of;
  const auto op = static_cast<troupe::op>(what.kind);
  return "running "
         + (op == op::update
              ? "an update"
              : to_string({op, where.direction, where.stage, what.microbatch}))
         + of;
}

occupation& run_watch::add(std::string who,
                           std::function<std::string(const task&)> doing,
                           int patience) {
  auto& result = occupations_.emplace_back(clock_);
  all_.push_back({std::move(who), &result, std::move(doing), patience});
  return result;
}

occupation& run_watch::device_of(int rank) {
  return add("rank " + std::to_string(rank), [this, rank](const task& what) {
    const auto hosted = plan_.hosted_by(rank);
    const auto where = std::ranges::find(hosted, what.stage, &position::stage);
    return text_of(what, *where);
  });
}

occupation& run_watch::device_of_server(position where) {
  return add(plan_.server_of(where),
             [this, where](const task& what) { return text_of(what, where); });
}

occupation& run_watch::reader_of(position first) {
  return add(
    plan_.source_of(first),
    [](const task& what) {
      return "reading microbatch " + std::to_string(what.microbatch);
    },
    patience_with_readers);
}

occupation& run_watch::group_of(position member, const std::string& deed) {
  return add("the GPU of rank " + std::to_string(plan_.rank_of(member)),
             [deed](const task&) { return deed; });
}

void run_watch::begin(notice_board& board, std::function<void()> ask,
                      std::function<void()> help, distant_watch* others) {
  watch_here();
  auto look_everywhere = [this, others] {
    return others != nullptr ? look_at(*others) : look();
  };
  auto all_at_work = [this, others] {
    return others != nullptr ? others->at_work() : at_work();
  };
  watcher_ =
    std::make_unique<watcher>(plan_.stall_timeout, board,
                              watcher::controls{.look = std::move(look_everywhere),
                                                .at_work = std::move(all_at_work),
                                                .ask = std::move(ask),
                                                .help = std::move(help),
                                                .asked = names_of(plan_),
                                                .silence = why_silent(plan_)});
}

/// The verdict of the other processes. But a run has stalled only if the others say so
/// while this process waits for them, as long as the timeout.
stall_rule::verdict run_watch::look_at(distant_watch& others) {
  const auto verdict = others.look();
  const auto waited = waited_awake();
  if (verdict != stall_rule::verdict::stalled)
    stalled_since_ = waited;
  const auto timeout = std::chrono::nanoseconds{plan_.stall_timeout}.count();
  return verdict == stall_rule::verdict::stalled && waited - stalled_since_ < timeout
           ? stall_rule::verdict::slow
           : verdict;
}

bool run_watch::somebody_is_stuck() {
  return rule_ && look() == stall_rule::verdict::stalled && !at_work().empty();
}

} // namespace troupe
