// SPDX-License-Identifier: BSD-3-Clause
#include "actors/meetings/collective_meeting.hpp"

#include "plan/run_plan.hpp"

#include <algorithm>

namespace troupe {

meeting_messages collective_meeting::start(const collective_part& part,
                                           const collective_memory& memory) {
  auto out = under_way_.begin(part, memory);
  if (!under_way_.is_under_way(part.instance))
    ended(part.instance);
  return sent(part.instance, std::move(out));
}

meeting_messages collective_meeting::receive(mail::meeting_message received) {
  const auto* const sum = std::get_if<mail::sum_over>(&received.body);
  auto* const message = std::get_if<collective_message>(&received.body);
  const int instance = sum != nullptr ? sum->checked_number() : message->instance;
  const bool has_begun = under_way_.is_under_way(instance); // else it is early
  auto out = sum != nullptr ? under_way_.end_sum(instance)
                            : under_way_.receive(std::move(*message));
  if (has_begun && !under_way_.is_under_way(instance))
    ended(instance);
  return sent(instance, std::move(out));
}

meeting_messages collective_meeting::sent(int instance,
                                          std::vector<collective_message> out) const {
  const bool of_stages = kind_ == meeting_kind::shards || kind_ == meeting_kind::layers;
  meeting_messages result;
  for (auto& message : out) {
    const auto to = member_at(instance, message.to);
    const auto bytes = message.bytes;
    result.push_back({{of_stages ? role::stage : role::optimizer_shard, to},
                      kind_,
                      std::move(message),
                      traffic_of(instance),
                      bytes});
  }
  return result;
}

void collective_meeting::yield_sums(const sum_requester& request) {
  under_way_.yield_sums([kind = kind_, request](int instance, collective_sum sum) {
    request({kind, instance, std::move(sum)});
  });
}

void collective_meeting::exchange_by(const group_finder& groups,
                                     const sum_requester& request) {
  std::vector<gpu_group*> found_groups;
  for (const int stride : strides())
    found_groups.push_back(groups(kind_, stride));
  has_gpu_groups_ =
    std::ranges::any_of(found_groups, [](auto* group) { return group != nullptr; });
  under_way_.exchange_by(
    [found_groups](int instance) {
      return found_groups[static_cast<std::size_t>(instance) % found_groups.size()];
    },
    [kind = kind_, request](int instance, collective_sum sum) {
      request({kind, instance, std::move(sum)});
    });
}

std::optional<missing_peer> collective_meeting::waits_for() const {
  if (under_way_.sums())
    return unfinished_sum();
  const auto missing = under_way_.waits_for();
  if (!missing)
    return {};
  return missing_from(missing->instance, member_at(missing->instance, missing->from));
}

missing_peer collective_meeting::missing_from(int, position sender) const {
  return {"a part of the array", plan_->name_of(sender)};
}

} // namespace troupe
