// SPDX-License-Identifier: BSD-3-Clause
#include "planner/kinds/tarnawski.hpp"

#include "planner/graph.hpp"

#include <algorithm>
#include <map>

namespace troupe::planner {

namespace {

using mistake = tl::unexpected<std::string>;

const tarnawski_operator& at(const tarnawski_problem& problem, int o) {
  return problem.operators[static_cast<std::size_t>(o)];
}

tl::expected<double, std::string> load(const tarnawski_problem& problem,
                                       const tarnawski_part& part,
                                       const operator_set& inside) {
  double result = 0, size = 0;
  for (const int o : part.operators) {
    result += part.on_cpu ? at(problem, o).cpu : at(problem, o).accelerator;
    size += at(problem, o).size;
    if (!part.on_cpu && !at(problem, o).accelerator_can)
      return mistake{"no accelerator runs operator " + std::to_string(o)};
  }
  if (part.on_cpu)
    return result;
  if (size > problem.memory)
    return mistake{"an accelerator has less memory than its operators need"};
  // An output crosses the border once, however many operators read the output.
  operator_set moved{static_cast<int>(problem.operators.size())};
  for (const auto& [from, to] : problem.edges)
    if (inside.has(from) != inside.has(to))
      moved.add(from);
  for (const int o : moved.members())
    result += at(problem, o).transfer;
  return result;
}

/// One sentence if a path between forward operators leaves a part and comes back.
std::string contiguity_error(const tarnawski_problem& problem,
                             const std::vector<edge>& forward_edges,
                             const std::vector<int>& where, int parts) {
  const auto count = static_cast<int>(problem.operators.size());
  const auto after = reachable(count, forward_edges);
  for (int part = 0; part < parts; ++part) {
    operator_set inside{count}, behind{count};
    for (int o = 0; o < count; ++o)
      if (where[static_cast<std::size_t>(o)] == part && !at(problem, o).backward) {
        inside.add(o);
        behind |= after[static_cast<std::size_t>(o)];
      }
    for (const int o : behind.without(inside).members())
      if (after[static_cast<std::size_t>(o)].intersects(inside))
        return "part " + std::to_string(part) + " is not contiguous";
  }
  return {};
}

} // namespace

tl::expected<double, std::string> cost(const tarnawski_problem& problem,
                                       const tarnawski_plan& plan) {
  const auto count = static_cast<int>(problem.operators.size());
  std::vector<int> where(problem.operators.size(), -1);
  int placed = 0, cpus = 0;
  std::vector<operator_set> sets;
  for (std::size_t p = 0; p < plan.parts.size(); ++p) {
    cpus += plan.parts[p].on_cpu ? 1 : 0;
    sets.emplace_back(count);
    for (const int o : plan.parts[p].operators) {
      if (o < 0 || o >= count)
        return mistake{"there is no operator " + std::to_string(o)};
      if (where[static_cast<std::size_t>(o)] >= 0)
        return mistake{"operator " + std::to_string(o) + " has two places"};
      where[static_cast<std::size_t>(o)] = static_cast<int>(p);
      sets.back().add(o);
      ++placed;
    }
  }
  if (placed != count)
    return mistake{"an operator has no place"};
  const auto parts = static_cast<int>(plan.parts.size());
  if (cpus > problem.cpus || parts - cpus > problem.accelerators)
    return mistake{"there are more parts than devices"};
  std::map<int, int> part_of_colour;
  for (int o = 0; o < count; ++o) {
    const auto& colour = at(problem, o).colour;
    const int part = where[static_cast<std::size_t>(o)];
    if (colour && part_of_colour.emplace(*colour, part).first->second != part)
      return mistake{"operators of colour " + std::to_string(*colour) + " are apart"};
  }
  std::vector<edge> forward_edges;
  for (const auto& e : problem.edges)
    if (!at(problem, e.from).backward && !at(problem, e.to).backward)
      forward_edges.push_back(e);
  if (problem.split == tarnawski_split::pipeline)
    for (const auto& [from, to] : forward_edges)
      if (where[static_cast<std::size_t>(from)] > where[static_cast<std::size_t>(to)])
        return mistake{"edge " + std::to_string(from) + "-" + std::to_string(to)
                       + " leads back"};
  if (problem.split == tarnawski_split::contiguous)
    if (const auto error = contiguity_error(problem, forward_edges, where, parts);
        !error.empty())
      return mistake{error};
  double worst = 0;
  for (std::size_t p = 0; p < plan.parts.size(); ++p) {
    const auto part_load = load(problem, plan.parts[p], sets[p]);
    if (!part_load)
      return part_load;
    worst = std::max(worst, *part_load);
  }
  return worst;
}

} // namespace troupe::planner
