// SPDX-License-Identifier: BSD-3-Clause
#include "actors/meetings/bucket_meeting.hpp"

#include <utility>

namespace troupe {

namespace {

/// The buffers for the messages of a bucket. Messages of an update may still be under
/// way in the next update, but no longer. The next update cannot end before all
/// replicas have begun that update.
payload_bound copies_of(const run_plan& plan, exchange_step step,
                        const bucket_group& group, std::int64_t values) {
  return troupe::copies_of(
    even_part(plan.exchange->order_of(step), group.index, group.count, values), 2,
    plan.has_gpus());
}

} // namespace

exchange_pools::exchange_pools(const run_plan& plan, position where, exchange_step step,
                               memory_account& account) {
  const auto groups = plan.groups_of(where);
  for (const auto values : plan.buckets_of(where)) {
    const auto copies = copies_of(plan, step, groups[pools_.size()], values);
    pools_.push_back(std::make_unique<pool>("copies under way to data replicas",
                                            copies.buffers, copies.values, account));
  }
}

std::int64_t exchange_pools::values(const run_plan& plan, position where,
                                    exchange_step step) {
  std::int64_t result = 0;
  const auto groups = plan.groups_of(where);
  const auto buckets = plan.buckets_of(where);
  for (std::size_t b = 0; b < buckets.size(); ++b) {
    const auto copies = copies_of(plan, step, groups[b], buckets[b]);
    result += copies.buffers * padded(copies.values);
  }
  return result;
}

bucket_meeting::bucket_meeting(const run_plan& plan, position where, exchange_step step,
                               std::shared_ptr<exchange_pools> pools)
  : plan_(&plan),
    where_(where),
    step_(step),
    groups_(plan.groups_of(where)),
    values_(plan.buckets_of(where)),
    arrays_(values_.size()),
    pools_(std::move(pools)) {
  // nop
}

letters bucket_meeting::begin(int occasion) {
  letters result;
  const auto begin = [&](int bucket) {
    for (auto& one : begin_bucket(bucket))
      result.push_back(std::move(one));
  };
  if (step_ == exchange_step::gather) {
    for (int b = 0; b < buckets(); ++b)
      begin(b);
  } else if (!in_turn_) {
    begin(occasion);
  } else {
    come_.insert(occasion);
    while (come_.erase(buckets() - 1 - begun_) > 0)
      begin(buckets() - 1 - begun_++);
  }
  return result;
}

letters bucket_meeting::begin_bucket(int bucket) {
  const auto b = static_cast<std::size_t>(bucket);
  const int instance = (odd_update_ ? buckets() : 0) + bucket;
  collective_memory memory;
  if (pools_)
    memory = {arrays_[b], arrays_[b], pools_->of(bucket)};
  const auto part = even_part(plan_->exchange->order_of(step_), groups_[b].index,
                              groups_[b].count, values_[b], 0, instance);
  auto out = under_way_.begin(part, memory);
  done_ += !under_way_.is_under_way(instance);
  return sent(instance, std::move(out));
}

void bucket_meeting::yield_sums(const sum_asker& ask) {
  under_way_.yield_sums([this, ask](int instance, collective_sum what) {
    ask({kind(), instance, std::move(what)});
  });
}

void bucket_meeting::exchange_by(const group_finder& groups, const sum_asker& ask) {
  std::vector<gpu_group*> all;
  for (const auto& one : groups_) {
    all.push_back(groups(kind(), one.stride));
    in_turn_ = in_turn_ || all.back() != nullptr;
  }
  under_way_.exchange_by(
    [all](int instance) {
      return all[static_cast<std::size_t>(instance) % all.size()];
    },
    [this, ask](int instance, collective_sum what) {
      ask({kind(), instance, std::move(what)});
    });
}

letters bucket_meeting::take(mail::letter what) {
  if (const auto* sum = std::get_if<mail::sum_over>(&what.what)) {
    auto out = under_way_.end_sum(sum->over());
    done_ += !under_way_.is_under_way(sum->number);
    return sent(sum->number, std::move(out));
  }
  auto message = std::get<collective_message>(std::move(what.what));
  const int instance = message.instance;
  if (!under_way_.is_under_way(instance))
    return sent(instance, under_way_.take(std::move(message))); // the message is early
  auto out = under_way_.take(std::move(message));
  done_ += !under_way_.is_under_way(instance);
  return sent(instance, std::move(out));
}

letters bucket_meeting::sent(int instance, std::vector<collective_message> out) const {
  const bool sum = step_ == exchange_step::sum;
  letters result;
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
  done_ = begun_ = 0;
}

std::optional<absence> bucket_meeting::waits_for() const {
  if (under_way_.sums())
    return own_sum();
  const auto missing = under_way_.waits_for();
  if (!missing)
    return {};
  const bool sum = step_ == exchange_step::sum;
  auto other = where_;
  other.data = replica_of(missing->instance, missing->from);
  return absence{std::string{sum ? "the gradients" : "the parameters"}
                   + " of data replica " + std::to_string(other.data),
                 plan_->optimizer_of(other)};
}

} // namespace troupe
