// SPDX-License-Identifier: BSD-3-Clause
#include "actors/meetings/bucket_meeting.hpp"

#include "plan/exchange_sizes.hpp"
#include "plan/sharding.hpp"
#include "plan/stage_buckets.hpp"

#include <utility>

namespace troupe {

exchange_pools::exchange_pools(const run_plan& plan, position where, exchange_step step,
                               memory_account& account) {
  const auto groups = groups_of(plan, where);
  for (const auto values : buckets_of(plan, where)) {
    const auto copies = copies_of_bucket(plan, step, groups[pools_.size()], values);
    pools_.push_back(std::make_unique<pool>("copies under way to data replicas",
                                            copies.buffers, copies.values, account));
  }
}

bucket_meeting::bucket_meeting(const run_plan& plan, position where, exchange_step step,
                               std::shared_ptr<exchange_pools> pools)
  : collective_meeting(plan, where,
                       step == exchange_step::sum ? meeting_kind::sums
                                                  : meeting_kind::gathers),
    step_(step),
    groups_(groups_of(plan, where)),
    values_(buckets_of(plan, where)),
    arrays_(values_.size()),
    pools_(std::move(pools)) {
  for (std::size_t b = 0; b < values_.size(); ++b)
    coders_.push_back(plan.exchange->coding_of(step).make());
}

meeting_messages bucket_meeting::begin(int index) {
  meeting_messages result;
  const auto begin = [&](int bucket) {
    for (auto& message : begin_bucket(bucket))
      result.push_back(std::move(message));
  };
  if (step_ == exchange_step::gather) {
    for (int b = 0; b < buckets(); ++b)
      begin(b);
  } else if (!has_gpu_groups()) {
    begin(index);
  } else {
    ready_buckets_.insert(index);
    while (ready_buckets_.erase(buckets() - 1 - started_buckets_) > 0)
      begin(buckets() - 1 - started_buckets_++);
  }
  return result;
}

meeting_messages bucket_meeting::begin_bucket(int bucket) {
  const auto b = static_cast<std::size_t>(bucket);
  const int instance = (odd_update_ ? buckets() : 0) + bucket;
  collective_memory memory;
  if (pools_)
    memory = {arrays_[b], arrays_[b], pools_->pool_of(bucket), coders_[b].get()};
  return start(replica_part(plan(), step_, groups_[b], values_[b], instance), memory);
}

std::vector<int> bucket_meeting::strides() const {
  std::vector<int> result;
  for (const auto& group : groups_)
    result.push_back(group.stride);
  return result;
}

/// If replicas share out experts, the members of an expert's group are `stride`
/// replicas apart.
position bucket_meeting::member_at(int instance, int member) const {
  const auto& group = groups_[static_cast<std::size_t>(instance % buckets())];
  auto result = where();
  result.data = member * group.stride + where().data % group.stride;
  return result;
}

traffic bucket_meeting::traffic_of(int) const {
  return step_ == exchange_step::sum ? traffic::gradients : traffic::parameters;
}

void bucket_meeting::next_update() {
  odd_update_ = !odd_update_;
  done_ = started_buckets_ = 0;
}

missing_peer bucket_meeting::missing_from(int, position sender) const {
  const bool sum = step_ == exchange_step::sum;
  return {std::string{sum ? "the gradients" : "the parameters"} + " of data replica "
            + std::to_string(sender.data),
          plan().optimizer_of(sender)};
}

} // namespace troupe
