// SPDX-License-Identifier: BSD-3-Clause
#include "planner/kinds/intra.hpp"

namespace troupe::planner {

tl::expected<double, std::string> cost(const intra_problem& problem,
                                       const intra_plan& plan) {
  using mistake = tl::unexpected<std::string>;
  if (plan.strategies.size() != problem.nodes.size())
    return mistake{"an operator has no strategy"};
  double total = 0, need = 0;
  for (std::size_t n = 0; n < plan.strategies.size(); ++n) {
    const auto& node = problem.nodes[n];
    const auto choice = static_cast<std::size_t>(plan.strategies[n]);
    if (plan.strategies[n] < 0 || choice >= node.cost.size())
      return mistake{"operator " + std::to_string(n) + " has no strategy "
                     + std::to_string(plan.strategies[n])};
    total += node.cost[choice];
    need += node.memory[choice];
  }
  if (problem.memory && need > *problem.memory)
    return mistake{"the strategies need more memory than there is"};
  for (const auto& edge : problem.edges) {
    const auto from = plan.strategies[static_cast<std::size_t>(edge.from)];
    const auto to = plan.strategies[static_cast<std::size_t>(edge.to)];
    total += edge.cost[static_cast<std::size_t>(from)][static_cast<std::size_t>(to)];
  }
  return total;
}

} // namespace troupe::planner
