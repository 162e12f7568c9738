// SPDX-License-Identifier: BSD-3-Clause
#include "planner/kinds/piper.hpp"

#include "planner/graph.hpp"

#include <algorithm>

namespace troupe::planner {

namespace {

using mistake = tl::unexpected<std::string>;

const piper_option* option_of(const piper_problem& problem, int o, int tensor,
                              const std::string& name) {
  for (const auto& option : problem.operators[static_cast<std::size_t>(o)].options)
    if (option.tensor == tensor && option.name == name)
      return &option;
  return nullptr;
}

struct stage_need {
  double seconds = 0;
  double bytes = 0;
};

/// \param later replicas of this stage and of all later stages together
tl::expected<stage_need, std::string> need_of(const piper_problem& problem,
                                              const piper_stage& stage, int later) {
  operator_set inside{static_cast<int>(problem.operators.size())};
  for (const int o : stage.operators)
    inside.add(o);
  if (stage.options.size() != stage.operators.size())
    return mistake{"a stage has another number of options than of operators"};
  const double d = stage.replicas;
  const double in_flight = (later + stage.replicas - 1) / stage.replicas;
  double work = 0, moved = 0, exchanged = 0;
  stage_need result;
  for (std::size_t i = 0; i < stage.operators.size(); ++i) {
    const int o = stage.operators[i];
    const auto* const option = option_of(problem, o, stage.tensor, stage.options[i]);
    if (!option)
      return mistake{"operator " + std::to_string(o) + " has no option "
                     + stage.options[i] + " of degree " + std::to_string(stage.tensor)};
    work += option->seconds;
    exchanged += 4 * (d - 1) / d * option->weights / problem.microbatches;
    result.bytes += option->in_flight_bytes * in_flight + option->fixed_bytes;
    for (std::size_t e = 0; e < problem.edges.size(); ++e) {
      const auto [from, to] = problem.edges[e].ends;
      if ((to == o && !inside.has(from)) || (from == o && !inside.has(to))) {
        const auto more = option->edge_bytes.find(static_cast<int>(e));
        moved += 2
                 * (problem.edges[e].bytes
                    + (more == option->edge_bytes.end() ? 0 : more->second));
      }
    }
  }
  result.seconds = work / d + (moved / d + exchanged) / problem.bandwidth;
  return result;
}

} // namespace

tl::expected<double, std::string> cost(const piper_problem& problem,
                                       const piper_plan& plan) {
  std::vector<std::vector<int>> parts;
  int devices = 0;
  for (const auto& stage : plan.stages) {
    parts.push_back(stage.operators);
    if (stage.replicas < 1 || problem.microbatches % stage.replicas != 0)
      return mistake{"replicas do not divide the microbatches"};
    devices += stage.tensor * stage.replicas;
  }
  std::vector<edge> edges;
  for (const auto& e : problem.edges)
    edges.push_back(e.ends);
  const auto count = static_cast<int>(problem.operators.size());
  if (const auto error = chain_error(count, edges, parts); !error.empty())
    return mistake{error};
  if (devices > problem.devices)
    return mistake{"the stages need more devices than there are"};
  double worst = 0;
  int later = 0;
  for (auto stage = plan.stages.rbegin(); stage != plan.stages.rend(); ++stage) {
    later += stage->replicas;
    const auto need = need_of(problem, *stage, later);
    if (!need)
      return mistake{need.error()};
    if (need->bytes > problem.memory)
      return mistake{"a stage needs more memory than a device has"};
    worst = std::max(worst, need->seconds);
  }
  return worst;
}

} // namespace troupe::planner
