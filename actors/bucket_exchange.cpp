#include "actors/bucket_exchange.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace troupe {

namespace {

/// Values of each bucket of a stage's gradients.
std::vector<std::int64_t> buckets_of(const run_plan& plan, position where) {
  if (!plan.work) {
    // At least a value to each, so that messages of no bytes take their latency.
    const double values =
      plan.link.gradient_bytes / sizeof(float) / plan.link.buckets / plan.tensor;
    return std::vector(static_cast<std::size_t>(plan.link.buckets),
                       std::max<std::int64_t>(std::llround(values), plan.data));
  }
  std::vector<std::int64_t> result;
  for (const auto& l : plan.layers_of(where))
    result.push_back(l->bucket());
  return result;
}

const collective_order& order_of(const run_plan& plan, exchange_step step) {
  return step == exchange_step::sum ? plan.exchange->sum : *plan.exchange->gather;
}

/// What a bucket's copies take. An update's messages may still be under way when the
/// next one begins, but no longer: it cannot end before everyone has begun it.
payload_bound copies_of(const run_plan& plan, position where, exchange_step step,
                        std::int64_t values) {
  auto result =
    payloads_of(even_part(order_of(plan, step), where.data, plan.data, values));
  result.buffers *= 2;
  return result;
}

} // namespace

exchange_pools::exchange_pools(const run_plan& plan, position where, exchange_step step,
                               memory_account& account) {
  for (const auto values : buckets_of(plan, where)) {
    const auto copies = copies_of(plan, where, step, values);
    pools_.push_back(std::make_unique<pool>("copies under way to data replicas",
                                            copies.buffers, copies.values, account));
  }
}

std::int64_t exchange_pools::values(const run_plan& plan, position where,
                                    exchange_step step) {
  std::int64_t result = 0;
  for (const auto values : buckets_of(plan, where)) {
    const auto copies = copies_of(plan, where, step, values);
    result += copies.buffers * padded(copies.values);
  }
  return result;
}

bucket_exchange::bucket_exchange(const run_plan& plan, position where,
                                 exchange_step step,
                                 std::shared_ptr<exchange_pools> pools)
  : order_(&order_of(plan, step)),
    rank_(where.data),
    ranks_(plan.data),
    values_(buckets_of(plan, where)),
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
  auto& c =
    running_
      .emplace(
        instance,
        collective{even_part(*order_, rank_, ranks_, values, 0, instance), memory})
      .first->second;
  auto out = c.begin();
  const auto own = std::stable_partition(
    early_.begin(), early_.end(),
    [&](const collective_message& m) { return m.instance != instance; });
  for (auto m = own; m != early_.end(); ++m)
    for (auto& answer : c.take(std::move(*m)))
      out.push_back(std::move(answer));
  early_.erase(own, early_.end());
  return note(c, std::move(out));
}

std::vector<collective_message> bucket_exchange::take(collective_message message) {
  const auto found = running_.find(message.instance);
  if (found == running_.end()) {
    early_.push_back(std::move(message));
    return {};
  }
  auto out = found->second.take(std::move(message));
  return note(found->second, std::move(out));
}

std::vector<collective_message>
bucket_exchange::note(const collective& c, std::vector<collective_message> out) {
  if (c.done()) {
    ++done_;
    running_.erase(c.part().instance);
  }
  return out;
}

void bucket_exchange::next_update() {
  odd_update_ = !odd_update_;
  done_ = 0;
}

std::optional<int> bucket_exchange::waits_for() const {
  for (const auto& [instance, c] : running_)
    if (const auto missing = c.waits_for())
      return missing->from;
  return {};
}

} // namespace troupe
