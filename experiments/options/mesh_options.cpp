// SPDX-License-Identifier: BSD-3-Clause
#include "experiments/options/mesh_options.hpp"

#include "experiments/options/option_list.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

namespace troupe {

namespace {

constexpr std::int64_t most_ranks = 1 << 20;

/// How the network is cut, from "2,2,1,1", "measured" or "costs=1.5/1/1/2". Returns
/// what is wrong, if anything.
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
      return "--split " + text + ": write numbers above 0, as costs=1.5/1/1/2";
    return {};
  }
  for (const auto& part : split(text, ',')) {
    const auto value = whole_number<int>(part);
    if (!value || *value < 1)
      return "--split " + text
             + ": write whole numbers, as 2,2,1,1, or measured, or costs=1.5/1/1/2";
    to.split.push_back(*value);
  }
  return {};
}

/// What stages recompute, from "stage", "blocks=2" or "stage,ahead". Returns what is
/// wrong, if anything.
std::string read_recomputation(const std::string& text, mesh_options& to) {
  if (text == "none")
    return {};
  const std::string_view blocks = "blocks=", ahead = ",ahead";
  auto what = text;
  to.recomputes = recomputation::late;
  if (what.ends_with(ahead)) {
    to.recomputes = recomputation::ahead;
    what.resize(what.size() - ahead.size());
  }
  if (what.starts_with(blocks))
    to.recomputed_units = whole_number<int>(what.substr(blocks.size())).value_or(0);
  if (what == "stage" || to.recomputed_units > 0)
    return {};
  return "--recompute " + text
         + ": write none, stage, or blocks=2 for two blocks or layers at once; "
           "ahead may stand behind these, as stage,ahead";
}

} // namespace

std::string read_axes(const std::string& text, mesh_options& to) {
  const std::map<std::string, int*> axes{{"data", &to.data},
                                         {"pipe", &to.stages},
                                         {"tensor", &to.tensor},
                                         {"expert", &to.expert}};
  std::set<std::string> given;
  for (const auto& part : split(text, ',')) {
    const auto equals = part.find('=');
    const auto axis = part.substr(0, equals);
    const auto size = equals == std::string::npos
                        ? std::nullopt
                        : whole_number<int>(part.substr(equals + 1));
    if (!axes.contains(axis) || !given.insert(axis).second || !size || *size < 1
        || *size > 65'536)
      return "--mesh '" + part
             + "': write data=2,pipe=4,tensor=2,expert=2, each axis once and from 1 to "
               "65,536";
    *axes.at(axis) = *size;
  }
  if (to.stages < 1)
    return "--stages is at least 1";
  if (std::int64_t{to.data} * to.tensor * to.stages > most_ranks)
    return "--stages and --mesh: at most 1,048,576 ranks in all";
  return {};
}

void add_mesh(option_list& to, typed_mesh& place, bool names_exchange) {
  to.begin_group("Mesh and schedule");
  to.add_option(
    "--stages", place.stages,
    "Ranks of a pipeline: stages of the network, one a rank, or several where "
    "a schedule says so.");
  to.add_option("--mesh", place.axes,
                "Ranks along each axis, as data=2,pipe=4,tensor=2. Data: replicas of "
                "the pipeline, each with a share of every batch. Pipe: as "
                "--stages. Tensor: shards of every layer. Expert: data replicas that "
                "share the experts of moe out.");
  to.add_flag("--sequence-parallel", place.sequence_parallel,
              "Sequence parallelism: tensor shards share each sequence's positions out "
              "where all would compute the same. Examples: norms, residuals and "
              "messages between stages.");
  to.add_option(
    "--recompute", place.recompute,
    "Forwards that run again before backwards, so that activations need not "
    "be kept. Value none: all are kept. Value stage: a stage keeps its "
    "inputs alone. Value blocks=K: it also keeps the input of every K "
    "blocks or layers. Word ahead behind these, as stage,ahead: a rank that "
    "waits for a gradient runs the forward meanwhile.");
  if (names_exchange)
    to.add_option("--exchange", place.exchange,
                  "Exchange by which data replicas keep one model: " + exchange_names()
                    + ".");
}

void add_stages(option_list& to, typed_mesh& place) {
  to.begin_group("Mesh and schedule");
  to.add_option("--stages", place.stages,
                "Stages of the network: actors, each with a device of its own.");
}

void add_split(option_list& to, typed_mesh& place) {
  to.begin_group("Mesh and schedule");
  to.add_option(
    "--split", place.split,
    "Blocks or layers of each stage, as 2,2,1,1. Word measured: their costs are "
    "measured first, and stages cost nearly the same. Costs that are known: "
    "costs=1.5/1/1/2, one for each block or layer, in any unit. Default: costs are "
    "counted operations.");
}

tl::expected<mesh_options, std::string> parse(const typed_mesh& typed) {
  mesh_options result{.stages = typed.stages};
  if (auto wrong = read_axes(typed.axes, result); !wrong.empty())
    return problem{wrong};
  const auto exchange = parse_exchange(typed.exchange);
  if (!exchange)
    return problem{exchange.error()};
  if (auto wrong = read_split(typed.split, result); !wrong.empty())
    return problem{wrong};
  if (auto wrong = read_recomputation(typed.recompute, result); !wrong.empty())
    return problem{wrong};
  result.sequence_parallel = typed.sequence_parallel && result.tensor > 1;
  result.exchange = *exchange;
  return result;
}

} // namespace troupe
