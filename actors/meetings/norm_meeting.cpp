// SPDX-License-Identifier: BSD-3-Clause
#include "actors/meetings/norm_meeting.hpp"

#include "plan/sharding.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace troupe {

norm_meeting::norm_meeting(const run_plan& plan, position where)
  : plan_(&plan), group_(norm_group(plan, where)), parts_(group_.size()) {
  // nop
}

meeting_messages norm_meeting::begin(int) {
  started_ = true;
  local_part_.update = ++updates_;
  return {{{role::optimizer_shard, group_.front()}, meeting_kind::norm, local_part_}};
}

meeting_messages norm_meeting::receive(mail::meeting_message received) {
  if (const auto* part = std::get_if<mail::norm_part>(&received.body))
    return receive(*part);
  const auto& answer = std::get<mail::clip_by>(received.body);
  if (started_ && answer.update == updates_) {
    factor_ = answer.factor;
    started_ = false;
  }
  return {};
}

// A part of an update that was answered before is a repetition: no shard waits for an
// answer.
meeting_messages norm_meeting::receive(const mail::norm_part& part) {
  if (part.update != answered_ + 1)
    return {};
  const auto index = std::ranges::find(group_, part.sender) - group_.begin();
  parts_[static_cast<std::size_t>(index)] = part;
  if (!std::ranges::all_of(parts_, [](const auto& p) { return p.has_value(); }))
    return {};
  double sum = 0;
  for (const auto& p : parts_)
    for (const double squares : p->squares)
      sum += squares;
  const auto samples = static_cast<double>(parts_.front()->samples);
  std::ranges::fill(parts_, std::nullopt);
  const mail::clip_by answer{
    clip_factor(plan_->work->optimizer.clip, std::sqrt(sum) / samples), ++answered_};
  meeting_messages messages;
  for (const auto& member : group_)
    messages.push_back({{role::optimizer_shard, member}, meeting_kind::norm, answer});
  return messages;
}

std::optional<missing_peer> norm_meeting::waits_for() const {
  for (std::size_t i = 0; i < parts_.size(); ++i)
    if (started_ && !parts_[i] && parts_.front())
      return missing_peer{"a part of the gradient norm",
                          plan_->optimizer_of(group_[i])};
  if (started_)
    return missing_peer{"the norm of all gradients",
                        plan_->optimizer_of(group_.front())};
  return {};
}

} // namespace troupe
