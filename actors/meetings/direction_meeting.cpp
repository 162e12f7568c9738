// SPDX-License-Identifier: BSD-3-Clause
#include "actors/meetings/direction_meeting.hpp"

#include <algorithm>
#include <utility>

namespace troupe {

direction_meeting::direction_meeting(const run_plan& plan, position where,
                                     bucket_complete told)
  : plan_(&plan),
    where_(where),
    told_(std::move(told)),
    parts_(static_cast<std::size_t>(plan.directions())),
    has_version_(parts_.size()),
    ready_(plan.tells_buckets() ? plan.buckets_of(where).size() : 0) {
  for (const auto values : plan.held_of(shared_out::parameters, where))
    version_bytes_ += values * std::int64_t{sizeof(float)};
}

letters direction_meeting::begin(int) {
  letters all;
  auto to = where_;
  for (to.direction = 1; to.direction < count(); ++to.direction)
    all.push_back({{role::optimizer_shard, to},
                   meeting_kind::directions,
                   mail::version_there{to.direction},
                   traffic::parameters,
                   version_bytes_});
  return all;
}

letters direction_meeting::take(mail::letter what) {
  if (auto* part = std::get_if<mail::update_request>(&what.what)) {
    const auto direction = static_cast<std::size_t>(part->what.what.direction);
    parts_[direction] = std::move(*part);
    return {};
  }
  if (const auto* there = std::get_if<mail::version_there>(&what.what)) {
    has_version_[static_cast<std::size_t>(there->direction)] = true;
    return {};
  }
  return take(std::get<mail::bucket_ready>(what.what));
}

letters direction_meeting::take(const mail::bucket_ready& part) {
  auto& bucket = ready_[static_cast<std::size_t>(part.bucket)];
  bucket.of.resize(parts_.size());
  bucket.of[static_cast<std::size_t>(part.direction)] = part.gradients;
  if (++bucket.count < count())
    return {};
  const auto all = std::exchange(bucket, {}).of;
  ++complete_buckets_;
  return told_ ? told_(part.bucket, all) : letters{};
}

bool direction_meeting::over(int occasion) const {
  if (occasion != all_gradients)
    return has_version_[static_cast<std::size_t>(occasion)];
  return complete_buckets_ == ready_.size()
         && std::ranges::all_of(parts_, [](const auto& p) { return p.has_value(); });
}

void direction_meeting::next_update() {
  std::ranges::fill(parts_, std::nullopt);
  has_version_.assign(parts_.size(), false);
  complete_buckets_ = 0;
}

std::optional<absence> direction_meeting::waits_for() const {
  const auto missing = [this](std::size_t direction, const char* how) {
    auto stage = where_;
    stage.direction = static_cast<int>(direction);
    return absence{"the gradients of direction " + std::to_string(direction) + how,
                   plan_->name_of(stage)};
  };
  for (std::size_t d = 0; d < parts_.size(); ++d)
    if (!parts_[d])
      return missing(d, "");
  for (const auto& bucket : ready_)
    for (std::size_t d = 0; d < bucket.of.size(); ++d)
      if (bucket.count > 0 && !bucket.of[d])
        return missing(d, " to arrive");
  if (complete_buckets_ < ready_.size())
    return missing(parts_.size() - 1, " to arrive");
  return {};
}

} // namespace troupe
