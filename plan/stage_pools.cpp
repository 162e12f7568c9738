// SPDX-License-Identifier: BSD-3-Clause
#include "plan/stage_pools.hpp"

#include "messaging/gpu_script.hpp"
#include "plan/exchange_sizes.hpp"
#include "plan/expert_sizes.hpp"
#include "plan/gpu_groups.hpp"
#include "plan/replica_rules.hpp"
#include "plan/saved_piece.hpp"
#include "plan/sharding.hpp"
#include "plan/stage_buckets.hpp"
#include "plan/stage_experts.hpp"
#include "plan/stage_layers.hpp"
#include "plan/stage_rules.hpp"
#include "plan/tied_ends.hpp"

#include <algorithm>
#include <utility>

namespace troupe {

std::int64_t stage_pools::bytes() const {
  std::int64_t parameters = 0;
  for (const auto bucket : buckets)
    parameters += padded(bucket) * (versions + snapshots);
  for (const auto bucket : rounded_buckets)
    parameters += padded(bucket) * rounded_versions;
  for (const auto bucket : gradients)
    parameters += padded(bucket);
  for (const auto bucket : packed)
    parameters += padded(bucket);
  for (const auto& copies : {to_shards, sums, gathers, ties, saved.versions,
                             saved.state, kept_steps.versions, kept_steps.state})
    parameters += copies.buffers * padded(copies.values);
  const auto values = parameters + 2 * (padded(gathered) + padded(whole_gradients))
                      + stashes * padded(stash) + inputs_slots * padded(inputs)
                      + kept_slots * padded(kept) + boundary_slots * padded(boundary)
                      + input_slots * (padded(input) + padded(labels)) + scratch
                      + recomputed_output + optimizer + exchanged + shared + experts;
  return values * std::int64_t{sizeof(float)};
}

int team_size(const run_plan& plan, int rank) {
  if (plan.machine.clock == clock_kind::virtual_time)
    return 1;
  const int ranks = plan.ranks();
  return std::max(1, plan.machine.threads / ranks
                       + (rank < plan.machine.threads % ranks ? 1 : 0));
}

namespace {

/// Adds the buffers for whole layers, and for messages between data replicas, of a
/// stage that holds shares (ZeRO 2 and 3).
void add_sharing(const run_plan& plan, position where, stage_pools& to) {
  const auto buckets = buckets_of(plan, where);
  const auto largest = std::ranges::max(buckets);
  // Copies for each of two layers. A message may still be in transit when the layer's
  // place is used again, but not when the place is used a third time.
  const auto copies = [&](exchange_step step) {
    const auto part =
      replica_part(plan, step, {where.data, plan.mesh[axis::data], 1}, largest);
    return copies_of(part, 4, plan.machine.has_gpus() && part.coding == &fp32_codec());
  };
  if (shares_out(plan, shared_out::gradients)) {
    to.whole_gradients = largest;
    to.sums = copies(exchange_step::sum);
  }
  if (shares_out(plan, shared_out::parameters)) {
    to.gathered = largest;
    to.gathers = copies(exchange_step::gather);
  }
}

} // namespace

namespace {

copies_bound copies_of(const run_plan& plan, position where, savers saved_by) {
  const auto bound_of = [&](shared_out kind, int copies) -> payload_bound {
    const auto values = values_of(pieces_of(plan, where, kind, saved_by));
    return values == 0 ? payload_bound{} : payload_bound{copies, values};
  };
  return {
    bound_of(shared_out::parameters, plan.bounds_of(where.hosted()).versions),
    bound_of(shared_out::optimizer_state, optimizer::state_size(plan.work->optimizer))};
}

} // namespace

copies_bound saved_copies(const run_plan& plan, position where) {
  return plan.copies.checkpoint_every > 0 ? copies_of(plan, where, savers::first_holder)
                                          : copies_bound{};
}

copies_bound kept_copies(const run_plan& plan, position where) {
  return plan.copies.keep_steps ? copies_of(plan, where, savers::every_holder)
                                : copies_bound{};
}

stage_pools pools_of(const run_plan& plan, position where) {
  const auto& work = *plan.work;
  const auto by_length = slices_of(plan, where, team_size(plan, plan.rank_of(where)));
  const auto& layers = by_length.whole();
  const auto bounds = plan.bounds_of(where.hosted());
  const auto sizes = by_length.sizes(plan.batches());
  stage_pools result;
  result.buckets = held_of(plan, shared_out::parameters, where);
  result.gradients = held_of(plan, shared_out::gradients, where);
  result.versions = bounds.versions;
  if (rounds_older_versions(plan)) {
    result.rounded_versions = std::exchange(result.versions, 1) - 1;
    for (const auto& bucket : layer_buckets(plan, where))
      result.rounded_buckets.push_back(bucket.owner->bucket(precision::bf16));
  }
  if (keeps_packed_weights(plan))
    for (const auto& bucket : layer_buckets(plan, where))
      result.packed.push_back(bucket.owner->packed_values());
  if (where.direction == 0)
    result.optimizer = optimizer::state_values(work.optimizer, layers_of(plan, where),
                                               state_shares_of(plan, where));
  if (where.direction == 0 && has_shared_parameters(plan, where))
    result.shared = state_values_of(plan, where);
  add_sharing(plan, where, result);
  if (sums_at_update(plan) && where.direction == 0)
    result.exchanged = exchanged_values(plan, where, exchange_step::sum);
  if (gathers_at_update(plan) && where.direction == 0)
    result.exchanged += exchanged_values(plan, where, exchange_step::gather);
  if (where.direction == 0 && has_tied_end(plan, where))
    result.ties = tied_copies(plan, where);
  result.saved = saved_copies(plan, where);
  result.kept_steps = kept_copies(plan, where).times(2);
  // With recomputation a stash is held for one pass, or from I to W.
  result.stashes = plan.recomputes()
                     ? std::min(bounds.stashes, bounds.split_backward + 1)
                     : bounds.stashes;
  result.stash = sizes.stash;
  result.inputs_slots = sizes.inputs > 0 ? bounds.stashes : 0;
  result.inputs = sizes.inputs;
  result.recomputed_output = plan.recomputes() ? sizes.output : 0;
  if (const auto experts = experts_of(plan, where.stage); !experts.empty()) {
    const auto local_experts = std::ranges::count_if(
      experts, [&](int number) { return host_of(plan, number, where) == where; });
    result.experts = sizes_of_expert(plan, experts.front())
                       .values(static_cast<int>(local_experts), work.experts.count,
                               result.stashes, bounds.split_backward);
  }
  result.kept_slots = bounds.split_backward;
  result.kept = sizes.kept;
  result.scratch = sizes.scratch;
  for (const auto& [samples, length] : plan.batches().shapes())
    for (const auto& collective :
         by_length.at_length(length).largest_collectives(samples)) {
      const auto copies = copies_of_shards(plan, where, collective);
      result.to_shards.buffers = std::max(result.to_shards.buffers, copies.buffers);
      result.to_shards.values = std::max(result.to_shards.values, copies.values);
    }
  result.snapshots = snapshots_of(plan, where);
  if (layers.is_first()) {
    // Inputs held by microbatches in flight, one read ahead, and one that a running
    // backward still reads. For labels this last one matters where forwards run again:
    // a forward lies between two such backwards.
    result.input_slots = plan.bounds_of({where.direction, 0}).stashes + 2;
    result.input = sizes.input;
    const auto last =
      slices_of(plan, {where.data, where.direction, plan.dims.stages - 1});
    result.labels = last.sizes(plan.batches()).labels;
  }
  if (!layers.is_last()) {
    // For each microbatch held here one buffer: the activation or its gradient. Both
    // exist while the next stage computes the gradient from the activation, until that
    // stage is notified of the end. If gradients leave at launch, the notice may come
    // after the next gradient.
    const auto next = plan.bounds_of({where.direction, where.stage + 1});
    result.boundary_slots =
      bounds.stashes + next.split_backward + 1
      + (plan.has_relays || leaves_at_launch(plan, where) ? 1 : 0);
    result.boundary = sizes.output;
  }
  return result;
}

std::int64_t boundary_bytes(const run_plan& plan, position lower) {
  const auto sizes = pools_of(plan, lower);
  return sizes.boundary_slots * padded(sizes.boundary) * std::int64_t{sizeof(float)};
}

std::vector<std::int64_t> bytes_needed(const run_plan& plan) {
  std::vector<std::int64_t> result;
  for (int rank = 0; rank < plan.ranks(); ++rank) {
    std::int64_t sum = 0;
    for (const auto& where : plan.hosted_by(rank)) {
      sum += pools_of(plan, where).bytes();
      if (auto lower = where; lower.stage-- > 0 && may_have_channel(plan, lower))
        sum += boundary_bytes(plan, lower);
    }
    result.push_back(sum);
  }
  return result;
}

} // namespace troupe
