// SPDX-License-Identifier: BSD-3-Clause
#include "planner/kinds/alpa.hpp"

#include <algorithm>

namespace troupe::planner {

namespace {

using mistake = tl::unexpected<std::string>;

const alpa_cost* row_of(const alpa_problem& problem, const alpa_stage& stage) {
  const auto row = std::ranges::find_if(problem.costs, [&](const alpa_cost& c) {
    return c.first == stage.first && c.last == stage.last && c.submesh == stage.submesh
           && c.config == stage.config;
  });
  return row == problem.costs.end() ? nullptr : &*row;
}

} // namespace

tl::expected<double, std::string> cost(const alpa_problem& problem,
                                       const alpa_plan& plan) {
  int next = 0, devices = 0;
  double total = 0, slowest = 0;
  for (std::size_t s = 0; s < plan.stages.size(); ++s) {
    const auto& stage = plan.stages[s];
    if (stage.first != next)
      return mistake{"layer " + std::to_string(next) + " has no place"};
    next = stage.last + 1;
    const auto* const row = row_of(problem, stage);
    if (!row)
      return mistake{"no row has the cost of stage " + std::to_string(s)};
    const auto later = static_cast<int>(plan.stages.size() - 1 - s);
    if (later > row->most_later)
      return mistake{"stage " + std::to_string(s) + " has no memory for "
                     + std::to_string(later) + " later stages"};
    total += row->seconds;
    slowest = std::max(slowest, row->seconds);
    devices += problem.submeshes[static_cast<std::size_t>(stage.submesh)].devices();
  }
  if (next != problem.layers)
    return mistake{"layer " + std::to_string(next) + " has no place"};
  if (devices != problem.mesh.devices())
    return mistake{"the stages do not fill the mesh"};
  return total + (problem.microbatches - 1) * slowest;
}

} // namespace troupe::planner
