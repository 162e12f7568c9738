// SPDX-License-Identifier: BSD-3-Clause
#include "actors/meetings/direction_meeting.hpp"

#include "plan/replica_rules.hpp"
#include "plan/sharding.hpp"
#include "plan/stage_buckets.hpp"

#include <algorithm>
#include <utility>

namespace troupe {

direction_meeting::direction_meeting(const run_plan& plan, position where,
                                     bucket_complete on_complete)
  : plan_(&plan),
    where_(where),
    on_complete_(std::move(on_complete)),
    parts_(static_cast<std::size_t>(plan.directions())),
    has_version_(parts_.size()),
    ready_(reports_buckets(plan) ? buckets_of(plan, where).size() : 0) {
  for (const auto values : held_of(plan, shared_out::parameters, where))
    version_bytes_ += values * std::int64_t{sizeof(float)};
}

meeting_messages direction_meeting::begin(int) {
  meeting_messages messages;
  auto to = where_;
  for (to.direction = 1; to.direction < count(); ++to.direction)
    messages.push_back({{role::optimizer_shard, to},
                        meeting_kind::directions,
                        mail::version_there{to.direction},
                        traffic::parameters,
                        version_bytes_});
  return messages;
}

meeting_messages direction_meeting::receive(mail::meeting_message received) {
  if (auto* part = std::get_if<mail::update_request>(&received.body)) {
    const auto direction = static_cast<std::size_t>(part->measured.action.direction);
    parts_[direction] = std::move(*part);
    return {};
  }
  if (const auto* arrival = std::get_if<mail::version_there>(&received.body)) {
    has_version_[static_cast<std::size_t>(arrival->direction)] = true;
    return {};
  }
  return receive(std::get<mail::bucket_ready>(received.body));
}

meeting_messages direction_meeting::receive(const mail::bucket_ready& part) {
  auto& bucket = ready_[static_cast<std::size_t>(part.bucket)];
  bucket.gradients.resize(parts_.size());
  bucket.gradients[static_cast<std::size_t>(part.direction)] = part.gradients;
  if (++bucket.count < count())
    return {};
  const auto gradients = std::exchange(bucket, {}).gradients;
  ++complete_buckets_;
  return on_complete_ ? on_complete_(part.bucket, gradients) : meeting_messages{};
}

bool direction_meeting::is_done(int index) const {
  if (index != all_gradients)
    return has_version_[static_cast<std::size_t>(index)];
  return complete_buckets_ == ready_.size()
         && std::ranges::all_of(parts_, [](const auto& p) { return p.has_value(); });
}

void direction_meeting::next_update() {
  std::ranges::fill(parts_, std::nullopt);
  has_version_.assign(parts_.size(), false);
  complete_buckets_ = 0;
}

std::optional<missing_peer> direction_meeting::waits_for() const {
  const auto missing = [this](std::size_t direction, const char* suffix) {
    auto stage = where_;
    stage.direction = static_cast<int>(direction);
    return missing_peer{"the gradients of direction " + std::to_string(direction)
                          + suffix,
                        plan_->name_of(stage)};
  };
  for (std::size_t d = 0; d < parts_.size(); ++d)
    if (!parts_[d])
      return missing(d, "");
  for (const auto& bucket : ready_)
    for (std::size_t d = 0; d < bucket.gradients.size(); ++d)
      if (bucket.count > 0 && !bucket.gradients[d])
        return missing(d, " to arrive");
  if (complete_buckets_ < ready_.size())
    return missing(parts_.size() - 1, " to arrive");
  return {};
}

} // namespace troupe
