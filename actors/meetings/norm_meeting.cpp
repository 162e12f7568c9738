// SPDX-License-Identifier: BSD-3-Clause
#include "actors/meetings/norm_meeting.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace troupe {

norm_meeting::norm_meeting(const run_plan& plan, position where)
  : plan_(&plan), group_(plan.norm_group(where)), parts_(group_.size()) {
  // nop
}

letters norm_meeting::begin(int) {
  begun_ = true;
  own_.update = ++updates_;
  return {{{role::optimizer_shard, group_.front()}, meeting_kind::norm, own_}};
}

letters norm_meeting::take(mail::letter what) {
  if (const auto* part = std::get_if<mail::norm_part>(&what.what))
    return take(*part);
  const auto& answer = std::get<mail::clip_by>(what.what);
  if (begun_ && answer.update == updates_) {
    factor_ = answer.factor;
    begun_ = false;
  }
  return {};
}

// A part of an update that was answered before is a repetition: no shard waits for an
// answer.
letters norm_meeting::take(const mail::norm_part& part) {
  if (part.update != answered_ + 1)
    return {};
  const auto place = std::ranges::find(group_, part.of) - group_.begin();
  parts_[static_cast<std::size_t>(place)] = part;
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
  letters all;
  for (const auto& member : group_)
    all.push_back({{role::optimizer_shard, member}, meeting_kind::norm, answer});
  return all;
}

std::optional<absence> norm_meeting::waits_for() const {
  for (std::size_t i = 0; i < parts_.size(); ++i)
    if (begun_ && !parts_[i] && parts_.front())
      return absence{"what the norm has of others", plan_->optimizer_of(group_[i])};
  if (begun_)
    return absence{"the norm of all gradients", plan_->optimizer_of(group_.front())};
  return {};
}

} // namespace troupe
