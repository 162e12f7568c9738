#include "actors/meetings/bucket_meeting.hpp"

#include <utility>

namespace troupe {

namespace {

/// What a bucket's copies take. An update's messages may still be under way when the
/// next one begins, but no longer: it cannot end before everyone has begun it.
payload_bound copies_of(const run_plan& plan, exchange_step step,
                        const bucket_group& group, std::int64_t values) {
  auto result = payloads_of(
    even_part(plan.exchange->order_of(step), group.index, group.count, values));
  result.buffers *= 2;
  return result;
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

bucket_exchange::bucket_exchange(const run_plan& plan, position where,
                                 exchange_step step,
                                 std::shared_ptr<exchange_pools> pools)
  : order_(&plan.exchange->order_of(step)),
    replica_(where.data),
    groups_(plan.groups_of(where)),
    values_(plan.buckets_of(where)),
    first_instance_(step == exchange_step::sum ? 0 : 2 * buckets()),
    pools_(std::move(pools)) {
  // nop
}

bool bucket_exchange::owns(const collective_message& message) const {
  return message.instance >= first_instance_
         && message.instance < first_instance_ + 2 * buckets();
}

std::vector<collective_message> bucket_exchange::begin(int bucket, float* array) {
  const int instance = first_instance_ + (odd_update_ ? buckets() : 0) + bucket;
  const auto values = values_[static_cast<std::size_t>(bucket)];
  collective_memory memory;
  if (pools_)
    memory = {array, array, pools_->of(bucket)};
  const auto& group = groups_[static_cast<std::size_t>(bucket)];
  const auto part = even_part(*order_, group.index, group.count, values, 0, instance);
  return note(instance, under_way_.begin(part, memory));
}

std::vector<collective_message> bucket_exchange::take(collective_message message) {
  const int instance = message.instance;
  if (!under_way_.is_under_way(instance))
    return under_way_.take(std::move(message)); // it comes early
  return note(instance, under_way_.take(std::move(message)));
}

std::vector<collective_message>
bucket_exchange::note(int instance, std::vector<collective_message> out) {
  done_ += !under_way_.is_under_way(instance);
  return out;
}

/// Those who share experts out sum each of them in groups of their own.
int bucket_exchange::replica_of(int instance, int member) const {
  const auto bucket = (instance - first_instance_) % buckets();
  const auto& group = groups_[static_cast<std::size_t>(bucket)];
  return member * group.apart + replica_ % group.apart;
}

void bucket_exchange::next_update() {
  odd_update_ = !odd_update_;
  done_ = 0;
}

} // namespace troupe
