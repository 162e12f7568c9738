// SPDX-License-Identifier: BSD-3-Clause
#include "plan/sharding.hpp"

#include "plan/stage_layers.hpp"

#include <cstddef>

namespace troupe {

std::vector<position> norm_group(const run_plan& plan, position p) {
  const bool all_stages = plan.work->optimizer.scope == clip_scope::network;
  const int replicas = shares_out(plan, shared_out::optimizer_state)
                         ? plan.mesh[axis::data]
                         : plan.mesh[axis::expert];
  const int first = p.data / replicas * replicas;
  std::vector<position> result;
  for (int s = all_stages ? 0 : p.stage;
       s < (all_stages ? plan.dims.stages : p.stage + 1); ++s)
    for (int d = first; d < first + replicas; ++d)
      for (int t = 0; t < plan.mesh[axis::tensor]; ++t)
        result.push_back({d, 0, s, t});
  return result;
}

std::vector<bucket_group> groups_of(const run_plan& plan, position p) {
  std::vector<bucket_group> result(buckets_of(plan, p).size(),
                                   {p.data, plan.mesh[axis::data], 1});
  if (!plan.work)
    return result;
  const auto ranks = plan.ranks_by_axis();
  const bucket_group hosts{ranks.index(plan.rank_of(p), axis::data),
                           ranks.size(axis::data), ranks.size(axis::expert)};
  for (std::size_t b = 0; const auto& bucket : layer_buckets(plan, p)) {
    if (bucket.expert >= 0)
      result[b] = hosts;
    ++b;
  }
  return result;
}

int device_count(const run_plan& plan, const std::vector<int>& ranks) {
  auto result = static_cast<int>(ranks.size());
  if (updates_are_by(plan, update_by::servers))
    for (const int rank : ranks)
      for (const auto& where : plan.hosted_by(rank))
        result += where.direction == 0;
  return result;
}

bucket_shares state_shares_of(const run_plan& plan, position p) {
  bucket_shares result;
  for (const auto& group : groups_of(plan, p))
    result.push_back(state_shares(plan) > 1 ? bucket_share{group.index, group.count}
                                            : bucket_share{});
  return result;
}

std::int64_t state_values_of(const run_plan& plan, position p) {
  const auto shares = state_shares_of(plan, p);
  const auto buckets = buckets_of(plan, p);
  std::int64_t sum = 0;
  for (std::size_t b = 0; b < buckets.size(); ++b)
    sum += shares[b].held(buckets[b]);
  return sum;
}

bucket_shares shares_of(const run_plan& plan, position p) {
  return shares_out(plan, shared_out::optimizer_state)
           ? state_shares_of(plan, p)
           : bucket_shares(buckets_of(plan, p).size());
}

std::vector<std::int64_t> held_of(const run_plan& plan, shared_out tensors,
                                  position p) {
  auto result = buckets_of(plan, p);
  const auto shares = shares_of(plan, p);
  for (std::size_t b = 0; b < result.size() && shares_out(plan, tensors); ++b)
    result[b] = shares[b].held(result[b]);
  return result;
}

int snapshots_of(const run_plan& plan, position p) {
  if (plan.copies.evaluate_every == 0 || !in_snapshot(plan, p))
    return 0;
  return 2 + plan.bounds_of({p.direction, 0}).stashes / plan.dims.microbatches;
}

int stops_with(const run_plan& plan, int rank) {
  const bool together =
    updates_are_by(plan, update_by::all_replicas) || plan.exchange->staleness;
  return together ? 0 : plan.data_of(rank);
}

bool passes_meet(const run_plan& plan, int stage) {
  return plan.mesh[axis::tensor] > 1 || shares_out(plan, shared_out::gradients)
         || !experts_of(plan, stage).empty();
}

bool leaves_at_launch(const run_plan& plan, position lower) {
  auto upper = lower;
  ++upper.stage;
  if (!plan.work || plan.machine.clock != clock_kind::real || plan.has_relays
      || plan.sch.local_rule())
    return false;
  const auto waits = [&](position p) {
    return plan.machine.processor_of(plan.rank_of(p)).is_gpu()
           && !passes_meet(plan, p.stage);
  };
  return waits(lower) && waits(upper);
}

} // namespace troupe
