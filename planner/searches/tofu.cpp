// SPDX-License-Identifier: BSD-3-Clause
// Recursive partition: the best strategies for the first axis of the mesh alone, then
// for each further axis with the former axes as they are. Wang, Huang, Li, "Supporting
// Very Large Models using Automatic Dataflow Graph Partitioning" (Tofu), EuroSys 2019,
// section 5. Each axis is a dynamic programme over operators.
//
//   axes     0      1                 mesh 2 x 2
//   up       f|-    f|m               a strategy is an index for each axis
//   down     f|-    f|m               '-': the axis repeats the work
//
// A problem whose strategies do not name axes has one axis.

#include "planner/searches/searches.hpp"
#include "planner/split_text.hpp"
#include "planner/strategy_search.hpp"

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace troupe::planner {

namespace {

using names = std::vector<std::string>; // an index for each axis

names split_name(const std::string& strategy) {
  return split_text(strategy, '|');
}

bool equal_besides(const names& a, const names& b, std::size_t axis) {
  for (std::size_t i = 0; i < a.size(); ++i)
    if (i != axis && a[i] != b[i])
      return false;
  return true;
}

class axis_search {
public:
  explicit axis_search(const intra_problem& problem)
    : problem_(problem),
      axes_(static_cast<std::size_t>(std::max(problem.mesh_axes, 1))),
      chosen_(problem.nodes.size(), names(axes_, "-")) {
    for (const auto& node : problem.nodes)
      for (const auto& strategy : node.strategies)
        if (problem.mesh_axes > 0 && split_name(strategy).size() != axes_)
          mistake_ = "operator '" + node.name + "' has the strategy '" + strategy
                     + "', which names no index for each of " + std::to_string(axes_)
                     + " axes";
  }

  outcome run() {
    intra_plan plan;
    for (std::size_t axis = 0; axis < axes_ && mistake_.empty(); ++axis) {
      const auto kept = kept_strategies(axis);
      if (!mistake_.empty())
        break;
      auto small = restricted(kept);
      auto found = least_strategies(small);
      if (!found && axis + 1 < axes_) {
        small.memory.reset(); // later axes may divide what does not fit yet
        found = least_strategies(small);
      }
      if (!found)
        return answer{};
      plan.strategies.clear();
      for (std::size_t node = 0; node < kept.size(); ++node) {
        const auto choice = static_cast<std::size_t>(found->strategies[node]);
        plan.strategies.push_back(static_cast<int>(kept[node][choice]));
        if (problem_.mesh_axes > 0)
          chosen_[node][axis] =
            split_name(problem_.nodes[node].strategies[kept[node][choice]])[axis];
      }
    }
    if (!mistake_.empty())
      return tl::unexpected{mistake_};
    return judged(problem_, std::move(plan));
  }

private:
  using numbers = std::vector<std::vector<std::size_t>>; // strategies of each operator

  // The strategies that differ from the chosen ones along one axis alone.
  numbers kept_strategies(std::size_t axis) {
    numbers kept;
    for (std::size_t node = 0; node < chosen_.size(); ++node) {
      const auto& all_names = problem_.nodes[node].strategies;
      auto& row = kept.emplace_back();
      for (std::size_t i = 0; i < all_names.size(); ++i)
        if (problem_.mesh_axes == 0
            || equal_besides(split_name(all_names[i]), chosen_[node], axis))
          row.push_back(i);
      if (row.empty())
        mistake_ = "operator '" + problem_.nodes[node].name
                   + "' has no strategy that divides axis " + std::to_string(axis)
                   + " and repeats the work along later axes";
    }
    return kept;
  }

  intra_problem restricted(const numbers& kept) const {
    auto small = problem_;
    for (std::size_t i = 0; i < kept.size(); ++i) {
      auto& node = small.nodes[i];
      const auto& whole = problem_.nodes[i];
      node.strategies.clear();
      node.cost.clear();
      node.memory.clear();
      for (const auto choice : kept[i]) {
        node.strategies.push_back(whole.strategies[choice]);
        node.cost.push_back(whole.cost[choice]);
        node.memory.push_back(whole.memory[choice]);
      }
    }
    for (std::size_t i = 0; i < small.edges.size(); ++i) {
      const auto& whole = problem_.edges[i];
      auto& costs = small.edges[i].cost;
      costs.clear();
      for (const auto row : kept[static_cast<std::size_t>(whole.from)]) {
        auto& line = costs.emplace_back();
        for (const auto column : kept[static_cast<std::size_t>(whole.to)])
          line.push_back(whole.cost[row][column]);
      }
    }
    return small;
  }

  const intra_problem& problem_;
  std::size_t axes_;
  std::vector<names> chosen_; // of each operator: an index for each axis
  std::string mistake_;
};

} // namespace

outcome tofu(const intra_problem& problem, const search_options&) {
  return axis_search{problem}.run();
}

} // namespace troupe::planner
