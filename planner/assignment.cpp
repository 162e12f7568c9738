// SPDX-License-Identifier: BSD-3-Clause
#include "planner/assignment.hpp"

#include <algorithm>
#include <cstddef>
#include <numeric>

namespace troupe::planner {

namespace {

double part_of(double excess, double limit) {
  return limit > 0 ? excess / limit : excess;
}

} // namespace

assignment_space space_of(const placement_problem& problem) {
  assignment_space space;
  space.choices.assign(problem.operators.size(), problem.devices());
  space.cost = [&problem](const assignment& devices) {
    return simulated_time(problem, devices);
  };
  space.excess = [&problem](const assignment& devices) {
    std::vector<double> needs(problem.memory.size());
    for (std::size_t i = 0; i < devices.size(); ++i)
      needs[static_cast<std::size_t>(devices[i])] += problem.operators[i].memory;
    double excess = 0;
    for (std::size_t device = 0; device < needs.size(); ++device)
      excess += std::max(0., needs[device] - problem.memory[device]);
    return part_of(excess,
                   std::reduce(problem.memory.begin(), problem.memory.end(), 0.));
  };
  return space;
}

assignment_space space_of(const intra_problem& problem) {
  assignment_space space;
  for (const auto& node : problem.nodes)
    space.choices.push_back(static_cast<int>(node.cost.size()));
  space.cost = [&problem](const assignment& strategies) {
    const auto chosen = [&](int node) {
      return static_cast<std::size_t>(strategies[static_cast<std::size_t>(node)]);
    };
    double sum = 0;
    for (std::size_t i = 0; i < strategies.size(); ++i)
      sum += problem.nodes[i].cost[static_cast<std::size_t>(strategies[i])];
    for (const auto& e : problem.edges)
      sum += e.cost[chosen(e.from)][chosen(e.to)];
    return sum;
  };
  space.excess = [&problem](const assignment& strategies) {
    if (!problem.memory)
      return 0.;
    double need = 0;
    for (std::size_t i = 0; i < strategies.size(); ++i)
      need += problem.nodes[i].memory[static_cast<std::size_t>(strategies[i])];
    return part_of(std::max(0., need - *problem.memory), *problem.memory);
  };
  return space;
}

} // namespace troupe::planner
