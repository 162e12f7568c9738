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
    if (!a.what.empty() && !a.on.empty())
      waits_on.emplace(a.who, a.on);
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
        answers, [](const auto& a) { return a.what.empty() && a.own.empty(); }))
    return "no actor reports what it waits for";
  std::string result;
  for (const auto& a : answers)
    if (!a.own.empty())
      result += a.own + "\n";
  if (!result.empty()) {
    result += "so these wait:\n";
  } else if (const auto cycle = cycle_of(answers); !cycle.empty()) {
    result += "a cycle: ";
    for (const auto& name : cycle)
      result += name + " waits for ";
    result += cycle.front() + "\n";
  } else {
    result += "these wait:\n";
  }
  for (const auto& a : answers)
    if (!a.what.empty())
      result += "  " + a.who + " waits for " + a.what
                + (a.on.empty() ? "" : " from " + a.on) + "\n";
  return result;
}

stall_rule::stall_rule(std::vector<watched> all, std::chrono::milliseconds timeout)
  : all_(std::move(all)), timeout_(timeout) {
  // nop
}

nanoseconds stall_rule::allowance(const watched& whose, const task& what) const {
  // tasks of a kind: each part of an action is among them
  constexpr std::int64_t many = 32;
  constexpr double slow_machine = 1e8; // operations a second
  constexpr nanoseconds factor = 20;
  const auto learned = factor * whose.seen->longest(what.kind);
  const auto guessed =
    whose.seen->ended(what.kind) < many
      ? static_cast<nanoseconds>(what.operations / slow_machine * 1e9)
      : 0;
  return std::max({whose.patience * nanoseconds_of(timeout_), learned, guessed});
}

stall_rule::verdict stall_rule::look(nanoseconds now, nanoseconds waited) {
  std::int64_t ended = 0;
  bool patient = false; // some task under way may well take as long
  for (const auto& w : all_) {
    ended += w.seen->ended();
    const auto task = w.seen->now();
    patient = patient || (task && now - task->since < allowance(w, task->what));
  }
  if (std::exchange(ended_, ended) != ended)
    last_news_ = waited;
  if (waited - last_news_ < nanoseconds_of(timeout_))
    return verdict::fine;
  return patient ? verdict::slow : verdict::stalled;
}

std::string stall_rule::at_work(nanoseconds now) const {
  std::string result;
  for (const auto& w : all_)
    if (const auto task = w.seen->now())
      result += "  " + w.who + " has been " + w.doing(task->what) + " for "
                + seconds(now - task->since) + "; such a task has taken "
                + seconds(w.seen->longest(task->what.kind)) + " at most\n";
  return result;
}

watcher::watcher(std::chrono::milliseconds timeout, notice_board& board, controls run)
  : timeout_(timeout),
    board_(board),
    run_(std::move(run)),
    thread_(start_thread(1, [this] { watch(); })) {
  // nop
}

watcher::~watcher() {
  {
    const std::lock_guard guard{lock_};
    stop_ = true;
  }
  wake_.notify_all();
  thread_.join();
}

bool watcher::sleep(std::chrono::milliseconds how_long) {
  std::unique_lock guard{lock_};
  return !wake_.wait_for(guard, how_long, [this] { return stop_; });
}

void watcher::watch() {
  while (sleep(std::clamp(timeout_ / 10, 1ms, 250ms))) {
    const auto verdict = run_.look();
    if (verdict == stall_rule::verdict::stalled)
      return report();
    board_.post_waiting(verdict == stall_rule::verdict::slow ? run_.at_work() : "");
  }
}

/// Waits for answers until all are there, or no more come: a second at most. Actors
/// without an answer are named.
void watcher::report() {
  constexpr int looks = 100, before_help = 15, before_end = 40;
  run_.ask();
  std::size_t there = 0;
  for (int i = 0, quiet = 0; i < looks && quiet < before_end; ++i, ++quiet) {
    if (const auto answers = board_.explanations().size(); answers > there) {
      there = answers;
      quiet = 0;
    }
    if (there == run_.asked.size())
      break;
    if (i == before_help)
      run_.help();
    if (!sleep(10ms))
      return;
  }
  board_.post_failure(describe(board_.explanations()));
}

std::string watcher::describe(const std::vector<mail::waiting_for>& answers) const {
  const auto at_work = run_.at_work();
  auto result =
    "the run has stalled: "
    + std::string{at_work.empty() ? "no action runs, and none" : "no action"}
    + " has ended for " + std::to_string(timeout_.count()) + " ms\n" + at_work
    + describe_stall(answers);
  std::string silent;
  for (const auto& who : run_.asked)
    if (std::ranges::find(answers, who, &mail::waiting_for::who) == answers.end())
      silent += (silent.empty() ? "" : ", ") + who;
  return silent.empty() ? result
                        : result + "  no answer from " + silent + run_.silence + "\n";
}

} // namespace troupe
