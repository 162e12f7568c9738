// SPDX-License-Identifier: BSD-3-Clause
#include "actors/nodes/node_limits.hpp"

#include "actors/checkpoints/training_state.hpp"
#include "actors/nodes/node_maps.hpp"
#include "models/optimizer_catalog.hpp"
#include "plan/memory_check.hpp"
#include "plan/stage_pools.hpp"

#include <algorithm>
#include <functional>
#include <numeric>
#include <utility>

namespace troupe {

namespace {

/// "cuda:0, cuda:2"
std::string text_of(const std::vector<int>& gpus) {
  std::string result;
  for (const int gpu : gpus)
    result += (result.empty() ? "" : ", ") + to_string(processor{gpu});
  return result;
}

std::vector<int> all_gpus() {
  std::vector<int> result(static_cast<std::size_t>(count_of_gpus()));
  std::iota(result.begin(), result.end(), 0);
  return result;
}

/// Whether a run can resume from the layers, versions and state that the leader
/// announces.
bool can_resume(const run_plan& plan, const mail::prepare& facts) {
  const auto layers = plan.work->whole.layers.size();
  const auto ordered =
    std::ranges::adjacent_find(facts.layers, std::ranges::greater_equal{});
  const bool known = std::ranges::all_of(facts.layers, [&](int layer) {
    return layer >= 0 && static_cast<std::size_t>(layer) < layers;
  });
  if (!known || ordered != facts.layers.end())
    return false;
  if (facts.batches_before == 0)
    return facts.older == 0 && facts.state_arrays == 0 && facts.updates.empty();
  return facts.batches_before > 0 && facts.batches_before < plan.dims.steps
         && facts.older >= 0 && facts.older <= most_older(plan) && !facts.layers.empty()
         && facts.state_arrays == optimizer::state_size(plan.work->optimizer)
         && facts.updates.size() == layers;
}

void keep(const mail::kept_results& kept, run_plan& plan) {
  plan.keep.record = kept.record;
  plan.keep.first_actions = kept.first;
  plan.observed.watched = kept.watched;
  plan.keep.weights = kept.weights;
  plan.keep.gradients = kept.gradients;
  plan.keep.versions = kept.versions;
  plan.observed.model_times = kept.model_times;
  plan.copies.evaluate_every = kept.evaluate_every;
  plan.copies.checkpoint_every = kept.checkpoint_every;
  plan.copies.keep_steps = kept.steps;
}

/// Bytes for messages to and from other nodes. At most as much is needed as between
/// ranks of one process, on both sides of each message; less where GPUs have direct
/// channels.
std::int64_t bytes_of_links(const run_plan& plan, position where,
                            const std::vector<int>& ranks) {
  const auto is_here = [&](position p) {
    return std::ranges::find(ranks, plan.rank_of(p)) != ranks.end();
  };
  const auto next_to = [&](int stage) {
    return position{where.data, where.direction, stage, where.tensor};
  };
  std::int64_t result = 0;
  if (const auto lower = next_to(where.stage - 1); where.stage > 0 && !is_here(lower))
    // gradients to send, activations to receive
    result += 2 * boundary_bytes(plan, lower);
  if (where.stage + 1 < plan.dims.stages && !is_here(next_to(where.stage + 1)))
    result += boundary_bytes(plan, where); // gradients to receive
  const auto sizes = pools_of(plan, where);
  std::int64_t values = sizes.exchanged;
  if (plan.copies.checkpoint_every > 0)
    values += sizes.optimizer; // state, copied for the leader
  for (const auto& copies : {sizes.to_shards, sizes.sums, sizes.gathers, sizes.ties})
    values += copies.buffers * copies.values;
  return result + values * std::int64_t{sizeof(float)};
}

/// Bytes that each of a node's ranks needs: pools, and messages with other nodes.
std::vector<std::int64_t> bytes_of(const run_plan& plan,
                                   const std::vector<int>& ranks) {
  const auto needed = bytes_needed(plan);
  std::vector<std::int64_t> result;
  for (const int rank : ranks) {
    auto& sum = result.emplace_back(needed[static_cast<std::size_t>(rank)]);
    for (const auto& where : plan.hosted_by(rank))
      sum += bytes_of_links(plan, where, ranks);
  }
  return result;
}

} // namespace

tl::expected<std::vector<processor>, std::string>
processors_of_part(const asked_processors& asked, const std::vector<int>& ranks,
                   std::size_t rank_count, const std::vector<int>& gpus) {
  if (asked.processors.empty())
    return asked.processors;
  std::vector<processor> result(rank_count);
  std::size_t next_gpu = 0;
  for (const int rank : ranks) {
    auto device =
      asked.processors[static_cast<std::size_t>(rank) % asked.processors.size()];
    if (device.is_gpu() && !asked.is_list && !gpus.empty())
      device.gpu = gpus[next_gpu++ % gpus.size()];
    if (device.is_gpu() && std::ranges::find(gpus, device.gpu) == gpus.end())
      return tl::unexpected{"rank " + std::to_string(rank) + " needs "
                            + (asked.is_list ? to_string(device) : "a GPU")
                            + (gpus.empty()
                                 ? ", and the node offers no GPU"
                                 : ", and the node offers " + text_of(gpus))};
    result[static_cast<std::size_t>(rank)] = device;
  }
  return result;
}

tl::expected<std::vector<processor>, std::string>
processors_allowed(const asked_processors& asked, const std::vector<int>& ranks,
                   std::size_t rank_count, const node_limits& limits) {
  const bool asks = std::ranges::any_of(asked.processors, &processor::is_gpu);
  const auto reason = asks ? absence_of_gpus() : "";
  std::vector<int> gpus;
  if (asks && reason.empty())
    gpus = limits.gpus ? *limits.gpus : all_gpus();
  auto result = processors_of_part(asked, ranks, rank_count, gpus);
  if (!result && !reason.empty())
    return tl::unexpected{result.error() + ": " + reason};
  return result;
}

tl::expected<run_plan, std::string>
accept_part(run_plan plan, const mail::prepare& facts, const node_limits& limits) {
  if (auto error =
        node_map_error(plan, facts.node_map, static_cast<int>(facts.nodes.size()));
      !error.empty())
    return tl::unexpected{error};
  if (!can_resume(plan, facts))
    return tl::unexpected{
      std::string{"the leader's request resumes from a state that no run can have"}};
  keep(facts.keep, plan);
  const auto ranks = ranks_at(facts.node_map, facts.node);
  if (limits.most_ranks > 0 && std::ssize(ranks) > limits.most_ranks)
    return tl::unexpected{"the run gives the node " + std::to_string(ranks.size())
                          + " ranks, and the node's --max-ranks is "
                          + std::to_string(limits.most_ranks)};
  const auto bytes = bytes_of(plan, ranks);
  const auto sum = std::accumulate(bytes.begin(), bytes.end(), std::int64_t{0});
  if (limits.most_memory > 0 && sum > limits.most_memory)
    return tl::unexpected{"the node's ranks need " + std::to_string(sum >> 20)
                          + " MiB, and the node's --max-memory is "
                          + std::to_string(limits.most_memory >> 20)};
  const auto memory = memory_of_this_machine(gpus_among(plan.machine.processors));
  if (auto error = check_memory_of_ranks(plan, ranks, bytes, {}, memory);
      !error.empty())
    return tl::unexpected{error};
  return plan;
}

} // namespace troupe
