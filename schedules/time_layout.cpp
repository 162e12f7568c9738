// SPDX-License-Identifier: BSD-3-Clause
#include "schedules/time_layout.hpp"

#include <algorithm>
#include <utility>

namespace troupe {

std::size_t time_layout::hash::operator()(const dependency& m) const {
  constexpr std::uint64_t odd = 0x9e3779b97f4a7c15;
  std::uint64_t result = static_cast<std::uint64_t>(m.kind);
  for (const auto part : {m.where, m.number})
    result = (result ^ static_cast<std::uint64_t>(part)) * odd;
  return static_cast<std::size_t>(result ^ (result >> 32));
}

time_layout::time_layout(std::size_t ranks, placed on_placed)
  : on_placed_(std::move(on_placed)), ranks_(ranks) {
  // nop
}

void time_layout::add(std::size_t rank, part next) {
  auto& r = ranks_[rank];
  r.todo.push_back(std::move(next));
  if (r.waits)
    return;
  woken_.push_back(rank);
  while (!woken_.empty()) {
    const auto woken_rank = woken_.back();
    woken_.pop_back();
    advance(woken_rank);
  }
}

void time_layout::advance(std::size_t rank) {
  auto& r = ranks_[rank];
  r.waits = false;
  while (!r.todo.empty() && is_ready(rank))
    place_next(rank);
}

/// Whether all events that the next part of a rank waits for have occurred. If not, the
/// first missing event wakes the rank.
bool time_layout::is_ready(std::size_t rank) {
  auto& r = ranks_[rank];
  for (const auto& m : r.todo.front().inputs)
    if (auto& p = open_[m]; p.produced < m.producers) {
      p.waiting.push_back(rank);
      r.waits = true;
      return false;
    }
  return true;
}

void time_layout::place_next(std::size_t rank) {
  auto& r = ranks_[rank];
  const auto now = std::move(r.todo.front());
  r.todo.pop_front();
  auto start = r.free_at;
  for (const auto& m : now.inputs) {
    const auto p = open_.find(m);
    start = std::max(start, p->second.time);
    if (++p->second.consumed == m.consumers)
      open_.erase(p);
  }
  r.free_at = start + now.length;
  for (const auto& m : now.outputs) {
    auto& p = open_[m];
    p.time = std::max(p.time, r.free_at);
    if (++p.produced == m.producers)
      for (const auto waiting : std::exchange(p.waiting, {}))
        woken_.push_back(waiting);
  }
  on_placed_(rank, start, r.free_at);
}

std::optional<std::size_t> time_layout::waiting() const {
  const auto unfinished =
    std::ranges::find_if(ranks_, [](const rank_state& r) { return !r.todo.empty(); });
  return unfinished != ranks_.end()
           ? std::optional{static_cast<std::size_t>(unfinished - ranks_.begin())}
           : std::nullopt;
}

} // namespace troupe
