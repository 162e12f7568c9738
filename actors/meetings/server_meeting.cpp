// SPDX-License-Identifier: BSD-3-Clause
#include "actors/meetings/server_meeting.hpp"

#include "plan/sharding.hpp"

#include <utility>

namespace troupe {

server_meeting::server_meeting(const run_plan& plan, position where)
  : plan_(&plan), where_(where) {
  // nop
}

position server_meeting::server(int share) const {
  auto result = where_;
  result.data = share;
  return result;
}

// Each server receives the bytes of a share; no bytes travel to the data replica's own
// server.
meeting_messages server_meeting::begin(int) {
  const auto push_message = push_();
  meeting_messages messages;
  for (int share = 0; share < plan_->mesh[axis::data]; ++share) {
    awaited_.push_back(share);
    const auto to = server(share);
    messages.push_back({{role::parameter_server, to},
                        meeting_kind::servers,
                        push_message,
                        to == where_ ? std::nullopt : std::optional{traffic::gradients},
                        state_values_of(*plan_, to) * std::int64_t{sizeof(float)}});
  }
  return messages;
}

meeting_messages server_meeting::receive(mail::meeting_message received) {
  std::erase(awaited_, std::get<mail::pulled>(received.body).server);
  return {};
}

std::optional<missing_peer> server_meeting::waits_for() const {
  if (awaited_.empty())
    return {};
  return missing_peer{"a share of the new parameters",
                      plan_->server_of(server(awaited_.front()))};
}

} // namespace troupe
