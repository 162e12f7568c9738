// SPDX-License-Identifier: BSD-3-Clause
#include "experiments/session/node_part.hpp"

#include "actors/checkpoints/training_state.hpp"
#include "actors/nodes/node_maps.hpp"
#include "experiments/options/options_text.hpp"
#include "experiments/options/setup.hpp"
#include "kernels/bf16_choice.hpp"
#include "models/data/data_name.hpp"
#include "models/file_within.hpp"
#include "plan/memory_check.hpp"
#include "plan/stage_pools.hpp"

#include <algorithm>
#include <functional>
#include <numeric>

namespace troupe {

namespace {

using problem = tl::unexpected<std::string>;

/// Removes the options that concern only the leader's process.
void forget_files(options& o) {
  o.checkpoint = {};
  o.data.init.clear();
  o.nodes = {};
  o.output = {};
}

/// One sentence about options that the command line would have refused; empty if there
/// are none.
std::string validation_error(const options& o, const mail::prepare& facts) {
  const auto& m = o.model;
  const auto& mesh = o.mesh;
  constexpr std::int64_t most = 1 << 30;
  const auto in_range = [](std::int64_t n, std::int64_t largest) {
    return n >= 1 && n <= largest;
  };
  constexpr int most_ranks = 1 << 16;
  for (const int axis : {mesh.data, mesh.stages, mesh.tensor, mesh.expert})
    if (!in_range(axis, most_ranks))
      return "the leader's request has a mesh axis outside 1 to 65,536";
  const auto ranks = std::int64_t{mesh.data} * mesh.stages * mesh.tensor;
  if (!in_range(ranks, most_ranks) || std::ssize(facts.node_map) != ranks)
    return "the leader's request has more than 65,536 ranks, or another number of "
           "ranks than the mesh";
  if (!in_range(o.schedules.microbatches, most) || !in_range(o.schedules.steps, most)
      || o.schedules.microbatches % mesh.data != 0 || o.schedules.chosen.size() != 1
      || o.schedules.epochs.value_or(1) <= 0)
    return "the leader's request has invalid steps, microbatches or schedules";
  for (const auto n : {m.layers, m.width, m.heads, m.length, m.words})
    if (!in_range(n, most))
      return "the leader's request has a model size that is out of range";
  if (o.data.batch && !in_range(*o.data.batch, most))
    return "the leader's request has a batch size that is out of range";
  if (!in_range(o.run.stall_timeout.count(), most))
    return "the leader's request has a stall timeout that is out of range";
  if (o.run.products != precision::fp32 && o.run.products != precision::bf16)
    return "the leader's request has an unknown precision";
  if (paths_of(o.run.sums).empty())
    return "the leader's request has an unknown kind of bf16 sums";
  if (std::ssize(o.run.processors) > ranks
      || std::ranges::any_of(o.run.processors, [](const processor& device) {
           return device.gpu < processor::cpu || (device.tf32 && !device.is_gpu());
         }))
    return "the leader's request has invalid devices: at most one for each rank is "
           "allowed, and tf32 only on GPUs";
  if (mesh.sequence_parallel && mesh.tensor == 1)
    return "the leader's request divides sequences, but has one tensor shard";
  const auto& optimizer = o.optimizer;
  if (!selection_error(optimizer).empty()
      || (optimizer.scope != clip_scope::network
          && optimizer.scope != clip_scope::stage))
    return "the leader's request has an unknown optimizer or scope of clipping";
  const auto& e = m.experts;
  if (m.model == "moe"
      && !(in_range(e.count, most_ranks) && in_range(e.chosen, e.count)))
    return "the leader's request has a number of experts that is out of range";
  return {};
}

/// One sentence if this CPU's bf16 products have other bits than the leader's. Empty if
/// the bits are equal, or if the CPU computes no such products.
/// \param ranks of the node
std::string products_error(const run_options& leader_options,
                           const std::vector<int>& ranks) {
  std::vector<processor> of_ranks;
  if (!leader_options.processors.empty())
    for (const int rank : ranks)
      of_ranks.push_back(leader_options.processors[static_cast<std::size_t>(rank)]);
  if (!makes_bf16_by_cpu(leader_options.products, of_ranks))
    return {};
  const auto path = chosen_bf16_path();
  if (!path)
    return path.error();
  if (sums_of(*path) == leader_options.sums)
    return {};
  std::string allowed; // the leader's paths that this processor has
  for (const auto other_path : bf16_paths())
    if (sums_of(other_path) == leader_options.sums)
      allowed += (allowed.empty() ? "" : " or ") + to_text(other_path);
  auto values = allowed + (allowed.empty() ? "" : " on the node");
  if (leader_options.sums != bf16_sums::fp32) // every processor has the path widen
    values += (values.empty() ? "" : ", or ")
              + std::string{"widen on all nodes and the leader"};
  return "the node computes products of bf16 by TROUPE_BF16=" + to_text(*path)
         + ", and the leader by " + paths_of(leader_options.sums)
         + ", whose bits differ: set TROUPE_BF16=" + values;
}

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

/// Assigns processors to a node's ranks. Returns one sentence about a mistake, else an
/// empty text.
/// \param rank_count number of the run's ranks
std::string assign_processors(const std::vector<int>& ranks, std::size_t rank_count,
                              const node_limits& limits, run_options& run) {
  const bool asks = std::ranges::any_of(run.processors, &processor::is_gpu);
  const auto reason = asks ? absence_of_gpus() : "";
  std::vector<int> gpus;
  if (asks && reason.empty())
    gpus = limits.gpus ? *limits.gpus : all_gpus();
  auto processors = processors_of_part(run, ranks, rank_count, gpus);
  if (!processors)
    return processors.error() + (reason.empty() ? "" : ": " + reason);
  run.processors = std::move(*processors);
  return {};
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
processors_of_part(const run_options& leader_options, const std::vector<int>& ranks,
                   std::size_t rank_count, const std::vector<int>& gpus) {
  const auto& asked = leader_options.processors;
  if (asked.empty())
    return asked;
  std::vector<processor> result(rank_count);
  std::size_t next_gpu = 0;
  for (const int rank : ranks) {
    auto device = asked[static_cast<std::size_t>(rank) % asked.size()];
    const bool listed = leader_options.lists_processors;
    if (device.is_gpu() && !listed && !gpus.empty())
      device.gpu = gpus[next_gpu++ % gpus.size()];
    if (device.is_gpu() && std::ranges::find(gpus, device.gpu) == gpus.end())
      return problem{"rank " + std::to_string(rank) + " needs "
                     + (listed ? to_string(device) : "a GPU")
                     + (gpus.empty() ? ", and the node offers no GPU"
                                     : ", and the node offers " + text_of(gpus))};
    result[static_cast<std::size_t>(rank)] = device;
  }
  return result;
}

tl::expected<run_plan, std::string> plan_of_part(const mail::prepare& facts,
                                                 const node_limits& limits) {
  auto o = options_from(facts.options);
  if (!o)
    return problem{o.error()};
  forget_files(*o);
  if (auto error = validation_error(*o, facts); !error.empty())
    return problem{error};
  o->data =
    parse(data_options{.text = o->data.text, // only the path in this text counts
                       .evaluation = o->data.evaluation,
                       .batch = o->data.batch,
                       .init = {},
                       .seed = o->data.seed});
  if (!o->trains || o->run.clock != clock_kind::real)
    return problem{"a node runs only trainings in real time"};
  const auto ranks = ranks_at(facts.node_map, facts.node);
  if (auto error = assign_processors(ranks, facts.node_map.size(), limits, o->run);
      !error.empty())
    return problem{error};
  if (auto error = products_error(o->run, ranks); !error.empty())
    return problem{error};
  if (limits.most_ranks > 0 && std::ssize(ranks) > limits.most_ranks)
    return problem{"the run gives the node " + std::to_string(ranks.size())
                   + " ranks, and the node's --max-ranks is "
                   + std::to_string(limits.most_ranks)};
  for (const auto& data : {o->data.path, parse_data_name(o->data.evaluation).path})
    if (!data.empty() && !leads_into(limits.folder, data))
      return problem{
        "the node reads only files of its --folder, which does not contain " + data};
  o->run.threads = limits.threads;
  // copies for checkpoints need memory here
  o->checkpoint.every = facts.keep.checkpoint_every;
  o->nodes.keep_steps = facts.keep.steps;
  auto prepared = set_up_part(*o, ranks, limits.folder);
  if (!prepared)
    return problem{prepared.error()};
  auto plan = std::move(prepared->runs.front().plan);
  if (auto error =
        node_map_error(plan, facts.node_map, static_cast<int>(facts.nodes.size()));
      !error.empty())
    return problem{error};
  if (!can_resume(plan, facts))
    return problem{"the leader's request resumes from a state that no run can have"};
  keep(facts.keep, plan);
  const auto bytes = bytes_of(plan, ranks);
  const auto sum = std::accumulate(bytes.begin(), bytes.end(), std::int64_t{0});
  if (limits.most_memory > 0 && sum > limits.most_memory)
    return problem{"the node's ranks need " + std::to_string(sum >> 20)
                   + " MiB, and the node's --max-memory is "
                   + std::to_string(limits.most_memory >> 20)};
  const auto memory = memory_of_this_machine(gpus_among(plan.machine.processors));
  if (auto error = check_memory_of_ranks(plan, ranks, bytes, {}, memory);
      !error.empty())
    return problem{error};
  return plan;
}

} // namespace troupe
