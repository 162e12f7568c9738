// SPDX-License-Identifier: BSD-3-Clause
#include "actors/run/stall.hpp"

#include "kernels/threads.hpp"

#include <algorithm>
#include <cstdio>
#include <map>
#include <utility>

namespace troupe {

using namespace std::chrono_literals;

namespace {

nanoseconds nanoseconds_of(std::chrono::milliseconds time) {
  return std::chrono::nanoseconds{time}.count();
}

std::string seconds(nanoseconds time) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g s", static_cast<double>(time) * 1e-9);
  return text;
}

/// The first cycle of the relation "waits for", from name to name; empty if there is
/// none.
std::vector<std::string> cycle_of(const std::vector<mail::waiting_for>& answers) {
  std::map<std::string, std::string> waits_on;
  for (const auto& a : answers)
    if (!a.input.empty() && !a.peer.empty())
      waits_on.emplace(a.actor, a.peer);
  for (const auto& [start, ignored] : waits_on) {
    std::vector<std::string> path{start};
    while (waits_on.contains(path.back())) {
      const auto& next = waits_on.at(path.back());
      const auto seen = std::ranges::find(path, next);
      if (seen != path.end())
        return {seen, path.end()};
      path.push_back(next);
    }
  }
  return {};
}

} // namespace

std::string describe_stall(const std::vector<mail::waiting_for>& answers) {
  if (std::ranges::all_of(
        answers, [](const auto& a) { return a.input.empty() && a.user_code.empty(); }))
    return "no actor reports that it waits";
  std::string result;
  for (const auto& a : answers)
    if (!a.user_code.empty())
      result += a.user_code + "\n";
  if (!result.empty()) {
    result += "therefore actors wait:\n";
  } else if (const auto cycle = cycle_of(answers); !cycle.empty()) {
    result += "a cycle: ";
    for (const auto& name : cycle)
      result += name + " waits for ";
    result += cycle.front() + "\n";
  } else {
    result += "these wait:\n";
  }
  for (const auto& a : answers)
    if (!a.input.empty())
      result += "  " + a.actor + " waits for " + a.input
                + (a.peer.empty() ? "" : " from " + a.peer) + "\n";
  return result;
}

stall_rule::stall_rule(std::vector<watched> watched_tasks,
                       std::chrono::milliseconds timeout)
  : watched_tasks_(std::move(watched_tasks)), timeout_(timeout) {
  // nop
}

nanoseconds stall_rule::time_budget(const watched& whose,
                                    const task& current_task) const {
  // tasks of a kind: each part of an action is among them
  constexpr std::int64_t many = 32;
  constexpr double slow_machine = 1e8; // operations a second
  constexpr nanoseconds factor = 20;
  const auto learned = factor * whose.seen->longest(current_task.kind);
  const auto guessed =
    whose.seen->ended(current_task.kind) < many
      ? static_cast<nanoseconds>(current_task.operations / slow_machine * 1e9)
      : 0;
  return std::max(
    {whose.allowed_timeouts * nanoseconds_of(timeout_), learned, guessed});
}

stall_rule::verdict stall_rule::look(nanoseconds now, nanoseconds waited) {
  std::int64_t ended = 0;
  bool patient = false; // some task under way may well take as long
  for (const auto& w : watched_tasks_) {
    ended += w.seen->ended();
    const auto task = w.seen->now();
    patient = patient || (task && now - task->since < time_budget(w, task->current));
  }
  if (std::exchange(ended_, ended) != ended)
    last_news_ = waited;
  if (waited - last_news_ < nanoseconds_of(timeout_))
    return verdict::fine;
  return patient ? verdict::slow : verdict::stalled;
}

std::string stall_rule::at_work(nanoseconds now) const {
  std::string result;
  for (const auto& w : watched_tasks_)
    if (const auto task = w.seen->now())
      result += "  " + w.name + " has been " + w.doing(task->current) + " for "
                + seconds(now - task->since) + "; such a task has taken "
                + seconds(w.seen->longest(task->current.kind)) + " at most\n";
  return result;
}

stall_watchdog::stall_watchdog(std::chrono::milliseconds timeout, run_status& status,
                               controls run)
  : timeout_(timeout),
    status_(status),
    run_(std::move(run)),
    thread_(start_thread(1, [this] { watch(); })) {
  // nop
}

stall_watchdog::~stall_watchdog() {
  {
    const std::lock_guard guard{lock_};
    stop_ = true;
  }
  wake_.notify_all();
  thread_.join();
}

bool stall_watchdog::sleep(std::chrono::milliseconds how_long) {
  std::unique_lock guard{lock_};
  return !wake_.wait_for(guard, how_long, [this] { return stop_; });
}

void stall_watchdog::watch() {
  while (sleep(std::clamp(timeout_ / 10, 1ms, 250ms))) {
    const auto verdict = run_.look();
    if (verdict == stall_rule::verdict::stalled)
      return report();
    status_.post_waiting(verdict == stall_rule::verdict::slow ? run_.at_work() : "");
  }
}

/// Waits for answers until all are there, or no more come: a second at most. Actors
/// without an answer are named.
void stall_watchdog::report() {
  constexpr int looks = 100, before_help = 15, before_end = 40;
  run_.request_explanations();
  std::size_t answered = 0;
  for (int i = 0, quiet = 0; i < looks && quiet < before_end; ++i, ++quiet) {
    if (const auto answers = status_.explanations().size(); answers > answered) {
      answered = answers;
      quiet = 0;
    }
    if (answered == run_.asked.size())
      break;
    if (i == before_help)
      run_.help();
    if (!sleep(10ms))
      return;
  }
  status_.post_failure(describe(status_.explanations()));
}

std::string
stall_watchdog::describe(const std::vector<mail::waiting_for>& answers) const {
  const auto at_work = run_.at_work();
  auto result =
    "the run has stalled: "
    + std::string{at_work.empty() ? "no action runs, and none" : "no action"}
    + " has ended for " + std::to_string(timeout_.count()) + " ms\n" + at_work
    + describe_stall(answers);
  std::string silent;
  for (const auto& name : run_.asked)
    if (std::ranges::find(answers, name, &mail::waiting_for::actor) == answers.end())
      silent += (silent.empty() ? "" : ", ") + name;
  return silent.empty() ? result
                        : result + "  no answer from " + silent + run_.silence + "\n";
}

} // namespace troupe
