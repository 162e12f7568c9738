// SPDX-License-Identifier: BSD-3-Clause
#include "schedules/waiting.hpp"

#include <algorithm>
#include <utility>

namespace troupe {

void waiting::add(const action& a) {
  auto* c = find(a);
  if (c == nullptr)
    c = &channels_.emplace_back(channel{a.op, a.direction, a.stage, {}});
  auto& queue = c->microbatches;
  const auto begin = queue.begin() + static_cast<std::ptrdiff_t>(c->first);
  queue.insert(std::upper_bound(begin, queue.end(), a.microbatch), a.microbatch);
}

bool waiting::has(const action& a) const {
  return std::ranges::any_of(channels_, [&](const channel& c) {
    return c.operation == a.op && c.direction == a.direction && c.stage == a.stage
           && std::binary_search(c.microbatches.begin()
                                   + static_cast<std::ptrdiff_t>(c.first),
                                 c.microbatches.end(), a.microbatch);
  });
}

bool waiting::remove(const action& a) {
  auto* c = find(a);
  if (c == nullptr)
    return false;
  auto& queue = c->microbatches;
  const auto begin = queue.begin() + static_cast<std::ptrdiff_t>(c->first);
  const auto match = std::lower_bound(begin, queue.end(), a.microbatch);
  if (match == queue.end() || *match != a.microbatch)
    return false;
  if (match == begin)
    ++c->first;
  else
    queue.erase(match);
  if (c->first * 2 >= queue.size()) { // amortised: erases at least half of the entries
    queue.erase(queue.begin(), queue.begin() + static_cast<std::ptrdiff_t>(c->first));
    c->first = 0;
  }
  return true;
}

std::vector<action> waiting::find_all(op operation, int first_stage) const {
  std::vector<action> result;
  for (const auto& c : channels_)
    if (c.operation == operation && c.stage >= first_stage)
      for (auto i = c.first; i < c.microbatches.size(); ++i)
        result.push_back({operation, c.direction, c.stage, c.microbatches[i]});
  std::ranges::sort(result);
  return result;
}

std::optional<action> waiting::lowest(op operation, int first_stage) const {
  std::optional<action> best;
  for (const auto& c : channels_)
    if (c.operation == operation && c.stage >= first_stage
        && c.first < c.microbatches.size()) {
      const action a{operation, c.direction, c.stage, c.microbatches[c.first]};
      if (!best
          || std::pair{a.microbatch, a.stage}
               < std::pair{best->microbatch, best->stage})
        best = a;
    }
  return best;
}

waiting::channel* waiting::find(const action& a) {
  for (auto& c : channels_)
    if (c.operation == a.op && c.direction == a.direction && c.stage == a.stage)
      return &c;
  return nullptr;
}

} // namespace troupe
