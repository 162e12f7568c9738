// SPDX-License-Identifier: BSD-3-Clause
#include "experiments/session/node_part.hpp"

#include "actors/embedding/job_facts.hpp"
#include "actors/nodes/node_maps.hpp"
#include "experiments/options/options_text.hpp"
#include "experiments/options/setup.hpp"
#include "kernels/bf16_choice.hpp"
#include "models/data/data_name.hpp"
#include "models/file_within.hpp"

#include <algorithm>
#include <utility>

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

} // namespace

tl::expected<run_plan, std::string> plan_of_part(const mail::prepare& facts,
                                                 const node_limits& limits,
                                                 const own_parts& own) {
  if (is_job_text(facts.options))
    return problem{std::string{"the leader's request is of a training_job: start the "
                               "node by the program that leads"}};
  auto o = options_from(facts.options, own);
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
                       .seed = o->data.seed,
                       .data_seed = o->data.data_seed,
                       .init_seed = o->data.init_seed});
  if (!o->trains || o->run.clock != clock_kind::real)
    return problem{"a node runs only trainings in real time"};
  const auto ranks = ranks_at(facts.node_map, facts.node);
  auto processors = processors_allowed({o->run.processors, o->run.lists_processors},
                                       ranks, facts.node_map.size(), limits);
  if (!processors)
    return problem{processors.error()};
  o->run.processors = std::move(*processors);
  if (auto error = products_error(o->run, ranks); !error.empty())
    return problem{error};
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
  return accept_part(std::move(prepared->runs.front().plan), facts, limits);
}

} // namespace troupe
