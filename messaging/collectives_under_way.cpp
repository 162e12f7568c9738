#include "messaging/collectives_under_way.hpp"

#include <utility>

namespace troupe {

std::vector<collective_message>
collectives_under_way::begin(const collective_part& part, collective_memory memory) {
  const int instance = part.instance;
  auto& c = running_.emplace(instance, collective{part, memory}).first->second;
  auto out = c.begin();
  if (auto early = early_.extract(instance))
    for (auto& message : early.mapped())
      for (auto& answer : c.take(std::move(message)))
        out.push_back(std::move(answer));
  end_if_done(instance);
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
  end_if_done(instance);
  return out;
}

void collectives_under_way::end_if_done(int instance) {
  if (const auto c = running_.find(instance); c->second.done())
    running_.erase(c);
}

std::optional<collectives_under_way::missing> collectives_under_way::waits_for() const {
  for (const auto& [instance, c] : running_)
    if (const auto message = c.waits_for())
      return missing{instance, message->from};
  return {};
}

} // namespace troupe
