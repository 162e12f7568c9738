// SPDX-License-Identifier: BSD-3-Clause
#include "plan/sharding.hpp"

#include "plan/replica_rules.hpp"
#include "plan/stage_buckets.hpp"

#include <algorithm>
#include <cstddef>

namespace troupe {

int data_in_snapshot(const run_plan& plan) {
  return shares_out(plan, shared_out::parameters) ? plan.mesh[axis::data]
                                                  : plan.mesh[axis::expert];
}

bool in_snapshot(const run_plan& plan, position p) {
  return p.direction == 0 && p.data < data_in_snapshot(plan);
}

int state_shares(const run_plan& plan) {
  return updates_are_by(plan, update_by::servers)
             || shares_out(plan, shared_out::optimizer_state)
           ? plan.mesh[axis::data]
           : 1;
}

bucket_extent extent_of(const run_plan& plan, shared_out tensors) {
  return shares_out(plan, tensors) ? bucket_extent::share : bucket_extent::whole;
}

namespace {

/// Data replicas of which each has gradients that no other has.
int replicas_of_norm(const run_plan& plan) {
  return shares_out(plan, shared_out::optimizer_state) ? plan.mesh[axis::data]
                                                       : plan.mesh[axis::expert];
}

/// The optimizer shards of stages [first_stage, last_stage) whose gradients one norm
/// covers, with the shard at data replica `data`.
std::vector<position> shards_of_norm(const run_plan& plan, int data, int first_stage,
                                     int last_stage) {
  const int replicas = replicas_of_norm(plan);
  const int first = data / replicas * replicas;
  std::vector<position> result;
  for (int s = first_stage; s < last_stage; ++s)
    for (int d = first; d < first + replicas; ++d)
      for (int t = 0; t < plan.mesh[axis::tensor]; ++t)
        result.push_back({d, 0, s, t});
  return result;
}

/// True if the norm covers every update's gradients, on whichever processors.
bool has_norms(const run_plan& plan) {
  return plan.work && !plan.sch.local_rule()
         && updates_are_by(plan, update_by::all_replicas);
}

} // namespace

std::vector<position> norm_group(const run_plan& plan, position p) {
  return plan.work->optimizer.scope == clip_scope::network
           ? shards_of_norm(plan, p.data, 0, plan.dims.stages)
           : shards_of_norm(plan, p.data, p.stage, p.stage + 1);
}

std::vector<position> norm_shards(const run_plan& plan) {
  if (!has_norms(plan))
    return {};
  auto result = shards_of_norm(plan, 0, 0, plan.dims.stages);
  const auto measures = [&](position p) { return measures_gradient(plan, p); };
  return std::ranges::all_of(result, measures) ? result : std::vector<position>{};
}

// A node knows only the processors of its own ranks, so no other shard's processor
// decides.
bool measures_gradient(const run_plan& plan, position p) {
  return has_norms(plan) && p.direction == 0 && p.data >= 0
         && p.data < replicas_of_norm(plan) && p.stage >= 0
         && p.stage < plan.dims.stages && p.tensor >= 0
         && p.tensor < plan.mesh[axis::tensor]
         && (plan.work->optimizer.clip > 0
             || !plan.machine.processor_of(plan.rank_of(p)).is_gpu());
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
} // namespace troupe
