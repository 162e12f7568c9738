// SPDX-License-Identifier: BSD-3-Clause
#include "actors/meetings/layer_meeting.hpp"

#include <utility>

namespace troupe {

layer_meeting::layer_meeting(const run_plan& plan, position where, layer_memory memory)
  : plan_(&plan),
    where_(where),
    memory_(std::move(memory)),
    values_(plan.buckets_of(where)) {
  // nop
}

bool layer_meeting::over(int occasion) const {
  const auto& all = step_of(occasion) == exchange_step::gather ? gathering_ : summing_;
  return all[static_cast<std::size_t>(occasion / 2 % 2)].instance < 0;
}

letters layer_meeting::begin(int occasion) {
  const auto step = step_of(occasion);
  const bool gather = step == exchange_step::gather;
  const int layer = occasion / 2;
  const int instance = 2 * begun_++ + (gather ? 1 : 0);
  of(step)[static_cast<std::size_t>(layer % 2)] = {layer, instance};
  const auto part = even_part(plan_->exchange->order_of(step), where_.data, plan_->data,
                              values_[static_cast<std::size_t>(layer)], 0, instance);
  collective_memory memory;
  if (memory_.gradients) {
    auto* const array =
      gather ? memory_.to_gather(layer, version_) : memory_.gradients(layer);
    memory = {array, array, gather ? memory_.gathers : memory_.sums};
  }
  return settled(step, under_way_.begin(part, memory));
}

void layer_meeting::yield_sums(const sum_asker& ask) {
  under_way_.yield_sums([ask](int instance, collective_sum what) {
    ask({meeting_kind::layers, instance, std::move(what)});
  });
}

void layer_meeting::exchange_by(const group_finder& groups, const sum_asker& ask) {
  under_way_.exchange_by(
    [group = groups(meeting_kind::layers, 1)](int) { return group; },
    [ask](int instance, collective_sum what) {
      ask({meeting_kind::layers, instance, std::move(what)});
    });
}

letters layer_meeting::take(mail::letter what) {
  if (const auto* sum = std::get_if<mail::sum_over>(&what.what))
    return settled(step_of_instance(sum->over()), under_way_.end_sum(sum->number));
  auto message = std::get<collective_message>(std::move(what.what));
  const auto step = step_of_instance(message.instance);
  return settled(step, under_way_.take(std::move(message)));
}

/// Handles collectives that have ended: a sum is added to the sums of other
/// microbatches, in the order of microbatches. Returns the messages to send.
letters layer_meeting::settled(exchange_step step,
                               std::vector<collective_message> out) {
  const bool gather = step == exchange_step::gather;
  for (auto& p : of(step))
    if (p.instance >= 0 && !under_way_.is_under_way(p.instance)) {
      p.instance = -1;
      if (!gather && memory_.add_share)
        memory_.add_share(p.layer, begins_sum_);
    }
  letters result;
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

std::optional<absence> layer_meeting::waits_for() const {
  if (under_way_.sums())
    return own_sum();
  const auto missing = under_way_.waits_for();
  if (!missing)
    return {};
  auto other = where_;
  other.data = missing->from;
  return absence{"its part", plan_->name_of(other)};
}

} // namespace troupe
