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
  : plan_(&plan),
    where_(where),
    step_(step),
    groups_(groups_of(plan, where)),
    values_(buckets_of(plan, where)),
    arrays_(values_.size()),
    pools_(std::move(pools)) {
  // nop
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
  } else if (!in_turn_) {
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
    memory = {arrays_[b], arrays_[b], pools_->pool_of(bucket)};
  const auto part = even_part(plan_->exchange->order_of(step_), groups_[b].index,
                              groups_[b].count, values_[b], 0, instance);
  auto out = under_way_.begin(part, memory);
  done_ += !under_way_.is_under_way(instance);
  return sent(instance, std::move(out));
}

void bucket_meeting::yield_sums(const sum_requester& request) {
  under_way_.yield_sums([this, request](int instance, collective_sum sum) {
    request({kind(), instance, std::move(sum)});
  });
}

void bucket_meeting::exchange_by(const group_finder& groups,
                                 const sum_requester& request) {
  std::vector<gpu_group*> found_groups;
  for (const auto& group : groups_) {
    found_groups.push_back(groups(kind(), group.stride));
    in_turn_ = in_turn_ || found_groups.back() != nullptr;
  }
  under_way_.exchange_by(
    [found_groups](int instance) {
      return found_groups[static_cast<std::size_t>(instance) % found_groups.size()];
    },
    [this, request](int instance, collective_sum sum) {
      request({kind(), instance, std::move(sum)});
    });
}

meeting_messages bucket_meeting::receive(mail::meeting_message received) {
  if (const auto* sum = std::get_if<mail::sum_over>(&received.body)) {
    auto out = under_way_.end_sum(sum->checked_number());
    done_ += !under_way_.is_under_way(sum->number);
    return sent(sum->number, std::move(out));
  }
  auto message = std::get<collective_message>(std::move(received.body));
  const int instance = message.instance;
  if (!under_way_.is_under_way(instance))
    return sent(instance,
                under_way_.receive(std::move(message))); // the message is early
  auto out = under_way_.receive(std::move(message));
  done_ += !under_way_.is_under_way(instance);
  return sent(instance, std::move(out));
}

meeting_messages bucket_meeting::sent(int instance,
                                      std::vector<collective_message> out) const {
  const bool sum = step_ == exchange_step::sum;
  meeting_messages result;
  for (auto& message : out) {
    auto to = where_;
    to.data = replica_of(instance, message.to);
    const auto bytes = message.bytes();
    result.push_back({{role::optimizer_shard, to},
                      kind(),
                      std::move(message),
                      sum ? traffic::gradients : traffic::parameters,
                      bytes});
  }
  return result;
}

/// The data replica of a member of the bucket's group. If replicas share out experts,
/// the members of an expert's group are `stride` replicas apart.
int bucket_meeting::replica_of(int instance, int member) const {
  const auto& group = groups_[static_cast<std::size_t>(instance % buckets())];
  return member * group.stride + where_.data % group.stride;
}

void bucket_meeting::next_update() {
  odd_update_ = !odd_update_;
  done_ = started_buckets_ = 0;
}

std::optional<missing_peer> bucket_meeting::waits_for() const {
  if (under_way_.sums())
    return unfinished_sum();
  const auto missing = under_way_.waits_for();
  if (!missing)
    return {};
  const bool sum = step_ == exchange_step::sum;
  auto sender = where_;
  sender.data = replica_of(missing->instance, missing->from);
  return missing_peer{std::string{sum ? "the gradients" : "the parameters"}
                        + " of data replica " + std::to_string(sender.data),
                      plan_->optimizer_of(sender)};
}

} // namespace troupe
