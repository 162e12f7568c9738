#include "actors/stall.hpp"

#include <algorithm>
#include <map>
#include <utility>

namespace troupe {

namespace {

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
  std::string result;
  if (const auto cycle = cycle_of(answers); !cycle.empty()) {
    result += "a cycle: ";
    for (const auto& name : cycle)
      result += name + " waits for ";
    result += cycle.front() + "\n";
  }
  for (const auto& a : answers)
    if (!a.what.empty())
      result += "  " + a.who + " waits for " + a.what
                + (a.on.empty() ? "" : " from " + a.on) + "\n";
  return result.empty() ? "nobody says what it waits for" : result;
}

watcher::watcher(const activity& seen, std::chrono::milliseconds timeout,
                 notice_board& board, std::function<void()> ask)
  : seen_(seen),
    timeout_(timeout),
    board_(board),
    ask_(std::move(ask)),
    thread_([this] { watch(); }) {
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
  using clock = std::chrono::steady_clock;
  auto last_ended = seen_.ended.load();
  auto last_news = clock::now();
  while (sleep(std::max(timeout_ / 10, std::chrono::milliseconds{1}))) {
    const auto ended = seen_.ended.load();
    if (seen_.running > 0 || ended != last_ended) {
      last_ended = ended;
      last_news = clock::now();
    } else if (clock::now() - last_news >= timeout_) {
      report();
      return;
    }
  }
}

void watcher::report() {
  constexpr int looks = 200;
  const auto began = "the run has stalled: no action runs, and none has ended for "
                     + std::to_string(timeout_.count()) + " ms; ";
  ask_();
  for (int i = 0; i < looks && sleep(std::chrono::milliseconds{10}); ++i)
    if (const auto answers = board_.take_explanations()) {
      board_.post_failure(began + describe_stall(*answers));
      return;
    }
  board_.post_failure(began + "not all actors answer");
}

} // namespace troupe
