// SPDX-License-Identifier: BSD-3-Clause
#include "messaging/collectives_under_way.hpp"

#include <algorithm>

namespace troupe {

std::vector<collective_message>
collectives_under_way::begin(const collective_part& part, collective_memory memory) {
  const int instance = part.instance;
  if (auto* const calls = calls_of(instance)) {
    auto out = calls->begin(part, memory);
    launch_next(*calls);
    return out;
  }
  const auto adder = request_ ? sums_by::caller : sums_by::itself;
  auto& c = running_.emplace(instance, collective{part, memory, adder}).first->second;
  auto out = c.begin();
  if (auto early = early_.extract(instance))
    for (auto& message : early.mapped())
      for (auto& answer : c.receive(std::move(message)))
        out.push_back(std::move(answer));
  look_at(instance);
  return out;
}

std::vector<collective_message>
collectives_under_way::receive(collective_message message) {
  const int instance = message.instance;
  if (auto* const calls = calls_of(instance)) {
    calls->receive(message);
    launch_next(*calls);
    return {};
  }
  const auto entry = running_.find(instance);
  if (entry == running_.end()) {
    early_[instance].push_back(std::move(message));
    return {};
  }
  auto out = entry->second.receive(std::move(message));
  look_at(instance);
  return out;
}

std::vector<collective_message> collectives_under_way::end_sum(int instance) {
  if (auto* const calls = calls_of(instance)) {
    calls->end(instance);
    return {};
  }
  auto out = running_.at(instance).end_sum();
  look_at(instance);
  return out;
}

/// The calls of the instance's group; null where messages carry the arrays.
group_calls* collectives_under_way::calls_of(int instance) {
  auto* const group = groups_ ? groups_(instance) : nullptr;
  return group != nullptr ? &calls_.try_emplace(group, *group).first->second : nullptr;
}

void collectives_under_way::launch_next(group_calls& calls) {
  while (auto next = calls.next())
    launch_(next->instance, std::move(next->sum));
}

bool collectives_under_way::is_under_way(int instance) const {
  return running_.contains(instance)
         || std::ranges::any_of(calls_, [&](const auto& entry) {
              return entry.second.is_under_way(instance);
            });
}

bool collectives_under_way::none() const {
  return running_.empty() && std::ranges::all_of(calls_, [](const auto& entry) {
           return entry.second.none();
         });
}

/// Handles a collective that has sent or received: requests a sum, or removes the
/// collective at the end.
void collectives_under_way::look_at(int instance) {
  const auto c = running_.find(instance);
  if (auto sum = c->second.take_sum())
    request_(instance, std::move(*sum));
  if (c->second.done())
    running_.erase(c);
}

bool collectives_under_way::sums() const {
  return std::ranges::any_of(running_, [](const auto& c) { return c.second.sums(); })
         || std::ranges::any_of(
           calls_, [](const auto& entry) { return entry.second.exchanges(); });
}

std::optional<collectives_under_way::missing> collectives_under_way::waits_for() const {
  for (const auto& [instance, c] : running_)
    if (const auto message = c.waits_for())
      return missing{instance, message->from};
  for (const auto& [group, calls] : calls_)
    if (const auto call = calls.waits_for())
      return missing{call->instance, call->from};
  return {};
}

} // namespace troupe
