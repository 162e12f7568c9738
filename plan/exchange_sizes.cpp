// SPDX-License-Identifier: BSD-3-Clause
#include "plan/exchange_sizes.hpp"

#include "messaging/collective_catalog.hpp"
#include "messaging/gpu_script.hpp"
#include "plan/layout.hpp"
#include "plan/sharding.hpp"
#include "plan/stage_buckets.hpp"

#include <bit>

namespace troupe {

namespace {

/// Returns an order that sends no more bytes than a ring, in the fewest rounds. Where
/// the number of ranks is no power of two, halving would send more bytes in a gather or
/// a scatter than a ring.
collective_order order_of(shard_collective<float>::kind operation, int ranks) {
  using kind = shard_collective<float>::kind;
  if (operation == kind::sum)
    return ranks == 2 ? doubling_all_reduce() : halving_all_reduce();
  const bool is_power_of_two = std::has_single_bit(static_cast<unsigned>(ranks));
  if (operation == kind::scatter)
    return is_power_of_two ? halving_reduce_scatter() : ring_reduce_scatter();
  return is_power_of_two ? halving_all_gather() : ring_all_gather();
}

} // namespace

collective_part replica_part(const run_plan& plan, exchange_step step,
                             const bucket_group& group, std::int64_t values,
                             int instance) {
  auto result = even_part(plan.exchange->order_of(step), group.index, group.count,
                          values, 0, instance);
  result.coding = &plan.exchange->coding_of(step);
  return result;
}

// Messages of an update may still be in transit during the next update, but no longer.
// The next update cannot end before all replicas have begun that update.
payload_bound copies_of_bucket(const run_plan& plan, exchange_step step,
                               const bucket_group& group, std::int64_t values) {
  return copies_of(replica_part(plan, step, group, values), 2, plan.machine.has_gpus());
}

std::int64_t exchanged_values(const run_plan& plan, position where,
                              exchange_step step) {
  std::int64_t result = 0;
  const auto groups = groups_of(plan, where);
  const auto buckets = buckets_of(plan, where);
  for (std::size_t b = 0; b < buckets.size(); ++b) {
    const auto copies = copies_of_bucket(plan, step, groups[b], buckets[b]);
    result += copies.buffers * padded(copies.values);
  }
  return result;
}

collective_part shard_part(const run_plan& plan, position where,
                           const shard_collective<float>& collective, int instance) {
  return even_part(order_of(collective.operation, plan.mesh[axis::tensor]),
                   where.tensor, plan.mesh[axis::tensor], collective.values, 0,
                   instance);
}

// A message may still be in transit when the next collective begins, but no longer. The
// next collective cannot end before all shards have begun that collective.
payload_bound copies_of_shards(const run_plan& plan, position where,
                               const shard_collective<float>& collective) {
  return copies_of(shard_part(plan, where, collective, 0), 2, plan.machine.has_gpus());
}

} // namespace troupe
