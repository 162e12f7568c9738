// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/occupation.hpp"

#include <algorithm>
#include <chrono>

namespace troupe {

nanoseconds wall_clock::steady() {
  return std::chrono::nanoseconds{std::chrono::steady_clock::now().time_since_epoch()}
    .count();
}

wall_clock::wall_clock() : state_(steady()) {
  // nop
}

nanoseconds wall_clock::now() const {
  const auto state = state_.load();
  return state >= 0 ? steady() - state : -state - 1;
}

void wall_clock::restart() {
  restart_at(steady());
}

void wall_clock::restart_at(nanoseconds steady_time) {
  state_ = steady_time;
}

void wall_clock::pause() {
  state_ = -now() - 1;
}

void wall_clock::resume() {
  state_ = steady() - now();
}

nanoseconds occupation::begin(const task& next) {
  constexpr auto relaxed = std::memory_order_relaxed;
  kind_.store(next.kind, relaxed);
  stage_.store(next.stage, relaxed);
  microbatch_.store(next.microbatch, relaxed);
  operations_.store(next.operations, relaxed);
  const auto start = clock_.now();
  since_.store(start, std::memory_order_release);
  return start;
}

nanoseconds occupation::end() {
  constexpr auto relaxed = std::memory_order_relaxed;
  const auto end = clock_.now();
  auto& kind = kinds_[static_cast<std::size_t>(kind_.load(relaxed))];
  const auto took = end - since_.load(relaxed);
  kind.longest.store(std::max(kind.longest.load(relaxed), took), relaxed);
  since_.store(-1, relaxed);
  kind.ended.fetch_add(1, relaxed);
  return end;
}

std::int64_t occupation::ended() const {
  std::int64_t sum = 0;
  for (const auto& kind : kinds_)
    sum += kind.ended;
  return sum;
}

// A task may end during this function. The result is then absent: a task that ends is
// no stall.
std::optional<occupation::view> occupation::now() const {
  const auto since = since_.load(std::memory_order_acquire);
  const view result{{kind_, stage_, microbatch_, operations_}, since};
  return since >= 0 && since_ == since ? std::optional{result} : std::nullopt;
}

} // namespace troupe
