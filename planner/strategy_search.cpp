// SPDX-License-Identifier: BSD-3-Clause
#include "planner/strategy_search.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <map>
#include <utility>
#include <vector>

// Operators get strategies in their order. The cost of later operators depends on the
// strategies of the open operators alone: earlier ones with an edge to a later one.
// For each choice of these, a state keeps the pairs of memory and cost of the rest that
// no other pair improves.

namespace troupe::planner {

namespace {

constexpr double tolerance = 1e-12;

// Memory and cost of operators from some operator on.
struct remainder {
  double memory = 0, cost = 0;
};

using remainders = std::vector<remainder>; // memory rises, cost falls
using strategies = std::vector<int>;

remainders undominated(remainders candidates) {
  std::ranges::sort(candidates, [](const remainder& a, const remainder& b) {
    return std::pair{a.memory, a.cost} < std::pair{b.memory, b.cost};
  });
  remainders result;
  for (const auto& pair : candidates)
    if (result.empty() || pair.cost < result.back().cost)
      result.push_back(pair);
  return result;
}

class strategy_table {
public:
  explicit strategy_table(const intra_problem& problem)
    : problem_(problem),
      inputs_(problem.nodes.size()),
      last_reader_(problem.nodes.size()),
      tables_(problem.nodes.size()),
      chosen_(problem.nodes.size()) {
    for (const auto& edge : problem.edges) {
      const auto first = index(std::min(edge.from, edge.to));
      const auto last = index(std::max(edge.from, edge.to));
      inputs_[last].push_back(&edge);
      last_reader_[first] = std::max(last_reader_[first], last);
    }
  }

  std::optional<intra_plan> best() {
    double memory = problem_.memory.value_or(0);
    const auto* least = fitting(rest(0), memory);
    if (least == nullptr)
      return std::nullopt;
    double cost = least->cost;
    const double slack = tolerance * std::max(1e-300, std::abs(cost));
    for (std::size_t node = 0; node < chosen_.size(); ++node)
      if (!choose(node, memory, cost, slack))
        return std::nullopt;
    return intra_plan{chosen_};
  }

private:
  static std::size_t index(int number) { return static_cast<std::size_t>(number); }

  double memory_of(std::size_t node, int strategy) const {
    return problem_.memory ? problem_.nodes[node].memory[index(strategy)] : 0;
  }

  // Of an operator, and of its edges to earlier ones.
  double cost_of(std::size_t node, int strategy) const {
    double cost = problem_.nodes[node].cost[index(strategy)];
    for (const auto* edge : inputs_[node]) {
      const auto end = [&](int number) {
        return index(index(number) == node ? strategy : chosen_[index(number)]);
      };
      cost += edge->cost[end(edge->from)][end(edge->to)];
    }
    return cost;
  }

  // The remainder of least cost within the memory; null if none fits.
  const remainder* fitting(const remainders& pairs, double memory) const {
    const remainder* result = nullptr;
    for (const auto& pair : pairs)
      if (pair.memory <= memory * (1 + tolerance))
        result = &pair;
    return result;
  }

  // Remainders from `node` on, for the strategies of earlier operators in chosen_.
  const remainders& rest(std::size_t node) {
    static const remainders nothing{{}};
    if (node == chosen_.size())
      return nothing;
    strategies open;
    for (std::size_t earlier = 0; earlier < node; ++earlier)
      if (last_reader_[earlier] >= node)
        open.push_back(chosen_[earlier]);
    const auto known = tables_[node].find(open);
    if (known != tables_[node].end())
      return known->second;
    remainders pairs;
    for (int strategy = 0; index(strategy) < problem_.nodes[node].cost.size();
         ++strategy) {
      chosen_[node] = strategy;
      const double cost = cost_of(node, strategy), memory = memory_of(node, strategy);
      for (const auto& later : rest(node + 1))
        pairs.push_back({memory + later.memory, cost + later.cost});
    }
    return tables_[node].emplace(open, undominated(std::move(pairs))).first->second;
  }

  // Takes the first strategy that reaches the cost within the memory.
  bool choose(std::size_t node, double& memory, double& cost, double slack) {
    for (int strategy = 0; index(strategy) < problem_.nodes[node].cost.size();
         ++strategy) {
      chosen_[node] = strategy;
      const double paid = cost_of(node, strategy), held = memory_of(node, strategy);
      const auto* later = fitting(rest(node + 1), memory - held);
      if (later == nullptr || paid + later->cost > cost + slack)
        continue;
      memory -= held;
      cost -= paid;
      return true;
    }
    return false;
  }

  const intra_problem& problem_;
  std::vector<std::vector<const intra_edge*>> inputs_; // edges from earlier operators
  std::vector<std::size_t> last_reader_; // last operator with an edge, 0: none
  std::vector<std::map<strategies, remainders>> tables_;
  strategies chosen_;
};

} // namespace

std::optional<intra_plan> least_strategies(const intra_problem& problem) {
  return strategy_table{problem}.best();
}

} // namespace troupe::planner
