// SPDX-License-Identifier: BSD-3-Clause
#include "actors/meetings/layer_meeting.hpp"

#include "plan/stage_buckets.hpp"

#include <utility>

namespace troupe {

layer_meeting::layer_meeting(const run_plan& plan, position where, layer_memory memory)
  : plan_(&plan),
    where_(where),
    memory_(std::move(memory)),
    values_(buckets_of(plan, where)) {
  // nop
}

bool layer_meeting::is_done(int index) const {
  const auto& uses = step_of(index) == exchange_step::gather ? gathering_ : summing_;
  return uses[static_cast<std::size_t>(index / 2 % 2)].instance < 0;
}

meeting_messages layer_meeting::begin(int index) {
  const auto step = step_of(index);
  const bool gather = step == exchange_step::gather;
  const int layer = index / 2;
  const int instance = 2 * started_count_++ + (gather ? 1 : 0);
  uses_of(step)[static_cast<std::size_t>(layer % 2)] = {layer, instance};
  const auto part =
    even_part(plan_->exchange->order_of(step), where_.data, plan_->mesh[axis::data],
              values_[static_cast<std::size_t>(layer)], 0, instance);
  collective_memory memory;
  if (memory_.gradients) {
    auto* const array =
      gather ? memory_.to_gather(layer, version_) : memory_.gradients(layer);
    memory = {array, array, gather ? memory_.gathers : memory_.sums};
  }
  return settled(step, under_way_.begin(part, memory));
}

void layer_meeting::yield_sums(const sum_requester& request) {
  under_way_.yield_sums([request](int instance, collective_sum sum) {
    request({meeting_kind::layers, instance, std::move(sum)});
  });
}

void layer_meeting::exchange_by(const group_finder& groups,
                                const sum_requester& request) {
  under_way_.exchange_by(
    [group = groups(meeting_kind::layers, 1)](int) { return group; },
    [request](int instance, collective_sum sum) {
      request({meeting_kind::layers, instance, std::move(sum)});
    });
}

meeting_messages layer_meeting::receive(mail::meeting_message received) {
  if (const auto* sum = std::get_if<mail::sum_over>(&received.body))
    return settled(step_of_instance(sum->checked_number()),
                   under_way_.end_sum(sum->number));
  auto message = std::get<collective_message>(std::move(received.body));
  const auto step = step_of_instance(message.instance);
  return settled(step, under_way_.receive(std::move(message)));
}

/// Handles collectives that have ended: a sum is added to the sums of other
/// microbatches, in the order of microbatches. Returns the messages to send.
meeting_messages layer_meeting::settled(exchange_step step,
                                        std::vector<collective_message> out) {
  const bool gather = step == exchange_step::gather;
  for (auto& p : uses_of(step))
    if (p.instance >= 0 && !under_way_.is_under_way(p.instance)) {
      p.instance = -1;
      if (!gather && memory_.add_share)
        memory_.add_share(p.layer, begins_sum_);
    }
  meeting_messages result;
  for (auto& message : out) {
    auto to = where_;
    to.data = message.to;
    const auto bytes = message.bytes();
    result.push_back({{role::stage, to},
                      meeting_kind::layers,
                      std::move(message),
                      gather ? traffic::parameters : traffic::gradients,
                      bytes});
  }
  return result;
}

std::optional<missing_peer> layer_meeting::waits_for() const {
  if (under_way_.sums())
    return unfinished_sum();
  const auto missing = under_way_.waits_for();
  if (!missing)
    return {};
  auto sender = where_;
  sender.data = missing->from;
  return missing_peer{"a part of the array", plan_->name_of(sender)};
}

} // namespace troupe
