#include "messaging/collectives_under_way.hpp"

#include <algorithm>

namespace troupe {

std::vector<collective_message>
collectives_under_way::begin(const collective_part& part, collective_memory memory) {
  const int instance = part.instance;
  const auto adder = ask_ ? sums_by::caller : sums_by::itself;
  auto& c = running_.emplace(instance, collective{part, memory, adder}).first->second;
  auto out = c.begin();
  if (auto early = early_.extract(instance))
    for (auto& message : early.mapped())
      for (auto& answer : c.take(std::move(message)))
        out.push_back(std::move(answer));
  look_at(instance);
  return out;
}

std::vector<collective_message>
collectives_under_way::take(collective_message message) {
  const int instance = message.instance;
  const auto found = running_.find(instance);
  if (found == running_.end()) {
    early_[instance].push_back(std::move(message));
    return {};
  }
  auto out = found->second.take(std::move(message));
  look_at(instance);
  return out;
}

std::vector<collective_message> collectives_under_way::end_sum(int instance) {
  auto out = running_.at(instance).end_sum();
  look_at(instance);
  return out;
}

/// It has sent or received something: it may have come to a sum, or be done.
void collectives_under_way::look_at(int instance) {
  const auto c = running_.find(instance);
  if (auto sum = c->second.take_sum())
    ask_(instance, std::move(*sum));
  if (c->second.done())
    running_.erase(c);
}

bool collectives_under_way::sums() const {
  return std::ranges::any_of(running_, [](const auto& c) { return c.second.sums(); });
}

std::optional<collectives_under_way::missing> collectives_under_way::waits_for() const {
  for (const auto& [instance, c] : running_)
    if (const auto message = c.waits_for())
      return missing{instance, message->from};
  return {};
}

} // namespace troupe
