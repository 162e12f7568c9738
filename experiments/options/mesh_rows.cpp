// SPDX-License-Identifier: BSD-3-Clause
#include "experiments/options/mesh_options.hpp"
#include "experiments/options/option_row.hpp"
#include "experiments/options/parsing.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

namespace troupe {

namespace {

constexpr std::int64_t most_ranks = 1 << 20;

/// Reads the cut of the network from "2,2,1,1", "measured" or "costs=1.5/1/1/2".
/// Returns one sentence about a mistake, else an empty text.
std::string read_split(const std::string& text, mesh_options& to) {
  const std::string_view by_costs = "costs=";
  to.measures_units = text == "measured";
  if (to.measures_units)
    return {};
  if (text.starts_with(by_costs)) {
    for (const auto& part : split(text.substr(by_costs.size()), '/'))
      to.unit_costs.push_back(number(part).value_or(0));
    const auto positive = [](double c) { return c > 0 && std::isfinite(c); };
    if (to.unit_costs.empty() || !std::ranges::all_of(to.unit_costs, positive))
      return "--split " + text + ": write numbers above 0, for example costs=1.5/1/1/2";
    return {};
  }
  for (const auto& part : split(text, ',')) {
    const auto value = whole_number<int>(part);
    if (!value || *value < 1)
      return "--split " + text
             + ": write measured, or numbers for the stages, for example 2,2,1,1 or "
               "costs=1.5/1/1/2";
    to.split.push_back(*value);
  }
  return {};
}

/// Reads the recomputation of stages from "stage", "blocks=2" or "stage,ahead". Returns
/// one sentence about a mistake, else an empty text.
std::string read_recomputation(const std::string& text, mesh_options& to) {
  if (text == "none")
    return {};
  const std::string_view blocks = "blocks=", ahead = ",ahead";
  auto extent = text;
  to.recomputes = recomputation::late;
  if (extent.ends_with(ahead)) {
    to.recomputes = recomputation::ahead;
    extent.resize(extent.size() - ahead.size());
  }
  if (extent.starts_with(blocks))
    to.recomputed_units = whole_number<int>(extent.substr(blocks.size())).value_or(0);
  if (extent == "stage" || to.recomputed_units > 0)
    return {};
  return "--recompute " + text
         + ": write none, stage or blocks=K, then perhaps ,ahead, for example "
           "blocks=2,ahead";
}

/// A line for each codec.
std::string codec_lines() {
  std::string result;
  for (const auto& entry : codec_catalog())
    result += "\n" + std::string{entry.name} + "\t" + std::string{entry.idea};
  return result;
}

} // namespace

std::string read_axes(const std::string& text, mesh_options& to) {
  const auto axis_near = [](const std::string& axis) {
    const std::vector<std::string> names{"data", "pipe", "tensor", "expert"};
    return std::ranges::count(names, axis) > 0 ? "" : did_you_mean(axis, names);
  };
  const std::map<std::string, int*> axes{{"data", &to.data},
                                         {"pipe", &to.stages},
                                         {"tensor", &to.tensor},
                                         {"expert", &to.expert}};
  std::set<std::string> seen_axes;
  for (const auto& part : split(text, ',')) {
    const auto equals = part.find('=');
    const auto axis = part.substr(0, equals);
    const auto size = equals == std::string::npos
                        ? std::nullopt
                        : whole_number<int>(part.substr(equals + 1));
    if (!axes.contains(axis) || !seen_axes.insert(axis).second || !size || *size < 1
        || *size > 65'536)
      return "--mesh '" + part + "'" + axis_near(axis)
             + ": write data=, pipe=, tensor= or expert= and 1 to 65,536, each axis "
               "once, for example data=2,pipe=4";
    *axes.at(axis) = *size;
  }
  if (to.stages < 1)
    return "--stages " + std::to_string(to.stages) + ": a pipeline has at least 1 rank";
  if (std::int64_t{to.data} * to.tensor * to.stages > most_ranks)
    return "--stages and --mesh give too many ranks: a run has at most 1,048,576";
  return {};
}

option_rows mesh_rows() {
  constexpr auto group = &typed_options::mesh;
  const auto has_mesh = [](const program_info& p) { return p.runs() && !p.measures; };
  const auto exchanges = [](const program_info& p) {
    return p.runs() && !p.measures && p.names_exchange;
  };
  return under(
    "Schedule and mesh", has_mesh,
    {row<group, &typed_mesh::stages>(
       "--stages", "Ranks of a pipeline. A rank has one stage of the network, or "
                   "several under schedules like interleaved."),
     row<group, &typed_mesh::stages>(
       "--stages",
       "Number of stages that the network is cut into. Each stage is an actor.",
       {.has = [](const program_info& p) { return p.infers(); }}),
     row<group, &typed_mesh::axes>(
       "--mesh", "Ranks along each axis, for example data=2,pipe=4,tensor=2. An axis "
                 "that is not given has 1 rank, and pipe has --stages.\n"
                 "data\treplicas of the pipeline, each with a share of every batch\n"
                 "pipe\tranks of a pipeline, in place of --stages\n"
                 "tensor\ttensor shards, each with a slice of every layer\n"
                 "expert\tdata replicas that the experts of moe are spread over"),
     row<group, &typed_mesh::exchange>(
       "--exchange",
       "Exchange of gradients and parameters between data replicas: " + exchange_names()
         + ".",
       {.has = exchanges,
        .effect = {[](run_view r) { return r.o.mesh.data > 1; },
                   "has no effect with one data replica: say --mesh data=2 or more "
                   "too, or leave % out"}}),
     row<group, &typed_mesh::compress>(
       "--compress", "Encoding of gradients in the messages that data replicas sum.",
       {.effect = {[](run_view r) {
                     return r.o.mesh.data > 1
                            && r.o.mesh.exchange.updates == update_by::all_replicas;
                   },
                   "has no effect without data replicas that sum gradients: say --mesh "
                   "data=2 or more and an --exchange like ring too, or leave % out"},
        .record = {recorded_in::checkpoints,
                   [](run_view r) {
                     return std::string{r.o.mesh.exchange.compression->name};
                   }},
        .changeable = true,
        .list = codec_lines}),
     row<group, &typed_mesh::recompute>(
       "--recompute",
       "Activations that backwards recompute from kept inputs, which saves memory.\n"
       "none\tstages keep all activations\n"
       "stage\ta stage keeps only its inputs\n"
       "blocks=K\ta stage keeps the input of every K blocks or layers\n"
       ",ahead\tappended: a rank recomputes while it waits for the gradient"),
     row<group, &typed_mesh::sequence_parallel>(
       "--sequence-parallel",
       "Tensor shards divide positions of sequences in norms, residuals and messages "
       "between stages, where all shards would otherwise compute the same.",
       {.effect = {[](run_view r) { return r.o.mesh.tensor > 1; },
                   "has no effect with one tensor shard: say --mesh tensor=2 or more "
                   "too, or leave % out"}}),
     row<group, &typed_mesh::split>(
       "--split",
       "Cut of the network into stages. Default: stages with nearly equal numbers of "
       "operations.\n"
       "2,2,1,1\tnumber of blocks or layers of each stage\n"
       "measured\tstages with nearly equal measured times\n"
       "costs=1.5/1/1/2\tstages with nearly equal costs. A cost of each block or layer "
       "is given, in any unit",
       {.has = [](const program_info& p) {
         return programs::learns(p) && !p.measures;
       }})});
}

tl::expected<mesh_options, std::string> parse(const typed_mesh& typed) {
  mesh_options result{.stages = typed.stages};
  if (auto error = read_axes(typed.axes, result); !error.empty())
    return problem{error};
  const auto exchange = parse_exchange(typed.exchange);
  if (!exchange)
    return problem{exchange.error()
                   + did_you_mean(typed.exchange.substr(0, typed.exchange.find('=')),
                                  names_in(exchange_names()))};
  if (auto error = read_split(typed.split, result); !error.empty())
    return problem{error};
  if (auto error = read_recomputation(typed.recompute, result); !error.empty())
    return problem{error};
  result.names_pipe = typed.axes.find("pipe=") != std::string::npos;
  result.sequence_parallel = typed.sequence_parallel && result.tensor > 1;
  result.exchange = *exchange;
  const auto* const compression = find_codec(typed.compress);
  if (compression == nullptr)
    return problem{
      unknown_name("compression", typed.compress, names_in(codec_names()))};
  result.exchange.compression = compression;
  return result;
}

} // namespace troupe
