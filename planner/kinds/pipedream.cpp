// SPDX-License-Identifier: BSD-3-Clause
#include "planner/kinds/pipedream.hpp"

#include "planner/graph.hpp"

#include <algorithm>

namespace troupe::planner {

namespace {

using mistake = tl::unexpected<std::string>;
using result_type = tl::expected<double, std::string>;

int parts_up(int count, int divisor) {
  return (count + divisor - 1) / divisor;
}

/// Seconds of the operators of `where` on all members of a level. `where` has the stage
/// of each operator of the level, and -1 for all other operators.
result_type level_cost(const pipedream_problem& problem, std::size_t level,
                       const std::vector<int>& operators,
                       const std::vector<pipedream_stage>& stages) {
  const auto [workers, bandwidth] = problem.levels[level];
  std::vector<int> where(problem.operators.size(), -1);
  std::size_t placed = 0;
  int used = 0;
  for (std::size_t s = 0; s < stages.size(); ++s) {
    if (stages[s].replicas < 1)
      return mistake{"stage " + std::to_string(s) + " has no replica"};
    used += stages[s].replicas;
    placed += stages[s].operators.size();
    for (const int o : stages[s].operators)
      where[static_cast<std::size_t>(o)] = static_cast<int>(s);
  }
  if (used != workers)
    return mistake{"not all " + std::to_string(workers) + " workers of level "
                   + std::to_string(level) + " are used"};
  if (placed != operators.size() || std::ranges::any_of(operators, [&](int o) {
        return where[static_cast<std::size_t>(o)] < 0;
      }))
    return mistake{"level " + std::to_string(level) + " has other operators"};
  double worst = 0;
  int remaining = workers;
  for (std::size_t s = 0; s < stages.size(); ++s) {
    const auto& stage = stages[s];
    double work = 0, weights = 0, outputs = 0;
    for (const int o : stage.operators) {
      const auto& chosen = problem.operators[static_cast<std::size_t>(o)];
      work += chosen.forward + chosen.backward;
      weights += chosen.parameter_bytes;
      outputs += chosen.output_bytes;
    }
    if (level > 0) {
      const auto inner = level_cost(problem, level - 1, stage.operators, stage.inner);
      if (!inner)
        return inner;
      work = *inner;
    } else if (problem.memory) {
      const double versions = parts_up(remaining, stage.replicas);
      if (versions * (weights + outputs) > *problem.memory)
        return mistake{"stage " + std::to_string(s)
                       + " needs more memory than there is"};
    }
    worst = std::max(
      worst, stage_seconds(problem.model, work, weights, stage.replicas, bandwidth));
    remaining -= stage.replicas;
    if (s + 1 == stages.size())
      break;
    std::vector<bool> leaves(problem.operators.size());
    for (const auto& [from, to] : problem.edges) {
      const int sender = where[static_cast<std::size_t>(from)];
      const int receiver = where[static_cast<std::size_t>(to)];
      if (sender >= 0 && sender <= static_cast<int>(s)
          && receiver > static_cast<int>(s))
        leaves[static_cast<std::size_t>(from)] = true;
    }
    double bytes = 0;
    for (std::size_t o = 0; o < leaves.size(); ++o)
      bytes += leaves[o] ? problem.operators[o].output_bytes : 0;
    worst =
      std::max(worst, link_seconds(problem.model, bytes, bandwidth, stage.replicas,
                                   stages[s + 1].replicas, s == 0));
  }
  return worst;
}

} // namespace

double stage_seconds(pipedream_model model, double work, double weights, int replicas,
                     double bandwidth) {
  const double r = replicas;
  if (model == pipedream_model::paper)
    return std::max(work, 2 * (r - 1) * weights / bandwidth) / r;
  return (work + 4 * (r - 1) * weights / (bandwidth * r)) / r;
}

double link_seconds(pipedream_model model, double bytes, double bandwidth, int sender,
                    int receiver, bool is_first) {
  if (model == pipedream_model::paper)
    return 2 * bytes / bandwidth;
  const int narrowest = is_first ? receiver : std::min(sender, receiver);
  return 2 * bytes / (bandwidth * narrowest);
}

tl::expected<double, std::string> cost(const pipedream_problem& problem,
                                       const pipedream_plan& plan) {
  std::vector<std::vector<int>> parts;
  std::vector<int> operators;
  for (const auto& stage : plan.stages) {
    parts.push_back(stage.operators);
    operators.insert(operators.end(), stage.operators.begin(), stage.operators.end());
    if (problem.straight && stage.replicas > 1)
      return mistake{"a stage has replicas, which `straight` forbids"};
  }
  const auto count = static_cast<int>(problem.operators.size());
  if (const auto error = chain_error(count, problem.edges, parts); !error.empty())
    return mistake{error};
  return level_cost(problem, problem.levels.size() - 1, operators, plan.stages);
}

} // namespace troupe::planner
