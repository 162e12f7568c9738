// SPDX-License-Identifier: BSD-3-Clause
#include "actors/meetings/tensor_meeting.hpp"

#include "plan/exchange_sizes.hpp"

namespace troupe {

tensor_meeting::tensor_meeting(const run_plan& plan, position where, pool* payloads)
  : plan_(&plan), where_(where), payloads_(payloads) {
  // nop
}

meeting_messages tensor_meeting::begin(int index) {
  const auto& collective = expected_[static_cast<std::size_t>(index)];
  const int instance = started_count_++;
  collective_memory memory;
  if (payloads_ != nullptr)
    memory = {collective.array, collective.array, payloads_};
  return sent(
    under_way_.begin(shard_part(*plan_, where_, collective, instance), memory));
}

void tensor_meeting::yield_sums(const sum_requester& request) {
  under_way_.yield_sums([request](int instance, collective_sum sum) {
    request({meeting_kind::shards, instance, std::move(sum)});
  });
}

void tensor_meeting::exchange_by(const group_finder& groups,
                                 const sum_requester& request) {
  under_way_.exchange_by(
    [group = groups(meeting_kind::shards, 1)](int) { return group; },
    [request](int instance, collective_sum sum) {
      request({meeting_kind::shards, instance, std::move(sum)});
    });
}

meeting_messages tensor_meeting::receive(mail::meeting_message received) {
  if (const auto* sum = std::get_if<mail::sum_over>(&received.body))
    return sent(under_way_.end_sum(sum->checked_number()));
  return sent(
    under_way_.receive(std::get<collective_message>(std::move(received.body))));
}

meeting_messages tensor_meeting::sent(std::vector<collective_message> messages) const {
  meeting_messages result;
  for (auto& message : messages) {
    auto to = where_;
    to.tensor = message.to;
    const auto bytes = message.bytes();
    result.push_back({{role::stage, to},
                      meeting_kind::shards,
                      std::move(message),
                      traffic::tensor,
                      bytes});
  }
  return result;
}

std::optional<missing_peer> tensor_meeting::waits_for() const {
  if (under_way_.sums())
    return unfinished_sum();
  const auto missing = under_way_.waits_for();
  if (!missing)
    return {};
  auto sender = where_;
  sender.tensor = missing->from;
  return missing_peer{"a part of the array", plan_->name_of(sender)};
}

} // namespace troupe
