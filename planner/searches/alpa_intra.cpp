// SPDX-License-Identifier: BSD-3-Clause
// An integer programme over strategies. Zheng et al., "Alpa: Automating Inter- and
// Intra-Operator Parallelism for Distributed Deep Learning", OSDI 2022, equations 1 to
// 5, with the products of equation 1 as columns of their own.
//
//   s(v, i)     1 if operator v has strategy i: whole, one of each operator
//   e(u, v, ij) s(u, i) s(v, j): sums over j are s(u, i), sums over i are s(v, j)
//   minimise    sum of costs(v, i) s(v, i) + costs(u, v, ij) e(u, v, ij)
//   memory      sum of memory(v, i) s(v, i) is at most the limit

#include "planner/integer_program.hpp"
#include "planner/searches/searches.hpp"
#include "planner/time_limit.hpp"

#include <algorithm>
#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <utility>

namespace troupe::planner {

namespace {

constexpr int usual_seconds = 60;

using terms = std::vector<std::pair<int, double>>;

double needed_memory(const intra_problem& problem, const intra_plan& plan) {
  double sum = 0;
  for (std::size_t node = 0; node < plan.strategies.size(); ++node)
    sum += problem.nodes[node].memory[static_cast<std::size_t>(plan.strategies[node])];
  return sum;
}

/// The plan that needs the least memory.
intra_plan smallest_plan(const intra_problem& problem) {
  intra_plan result;
  for (const auto& node : problem.nodes)
    result.strategies.push_back(
      static_cast<int>(std::ranges::min_element(node.memory) - node.memory.begin()));
  return result;
}

/// The memory that plans may need beyond the smallest plan's.
struct memory_room {
  intra_plan smallest;
  double doubt = 0; ///< Sums are rounded.
  double most = 0;  ///< A sum that plans have, or all that the limit leaves.
};

/// The largest excess over the smallest plan, up to `room`, that a plan has; `room` if
/// plans have too many sums to count, or if the time is over.
double largest_sum(const intra_problem& problem, const intra_plan& smallest,
                   double room, double doubt, const time_limit& time) {
  constexpr std::size_t most_sums = 20'000;
  std::set<double> sums{0};
  for (std::size_t node = 0; node < problem.nodes.size(); ++node) {
    const auto& memory = problem.nodes[node].memory;
    const double least = memory[static_cast<std::size_t>(smallest.strategies[node])];
    const std::set<double> needs(memory.begin(), memory.end());
    std::set<double> longer;
    for (const double sum : sums)
      for (const double need : needs)
        if (const double excess = sum + (need - least); excess <= room + doubt)
          longer.insert(excess);
    sums = std::move(longer);
    if (sums.size() > most_sums || time.is_over())
      return room;
  }
  return *sums.rbegin();
}

/// \pre the problem has a limit, and its smallest plan fits
memory_room room_of(const intra_problem& problem, const time_limit& time) {
  memory_room result{smallest_plan(problem), *problem.memory * 1e-12};
  result.most = largest_sum(problem, result.smallest,
                            *problem.memory - needed_memory(problem, result.smallest),
                            result.doubt, time);
  return result;
}

/// The end of a search.
struct found_plan {
  std::optional<intra_plan> best; ///< Absent: none was found.
  search_end end = search_end::failed;
};

class strategy_program {
public:
  /// \param bound a cost that a plan has, above 0. Costs are divided by the bound, as
  /// tolerances of solvers are absolute.
  /// \param room absent: memory has no limit
  strategy_program(const intra_problem& problem, double bound,
                   const std::optional<memory_room>& room)
    : problem_(problem), bound_(bound) {
    add_nodes();
    for (const auto& [ends, costs] : merged_edges())
      add_edge(ends.first, ends.second, costs);
    if (room)
      add_memory(*room);
  }

  /// The best plan that the time allows.
  found_plan best_found(double most_seconds) const {
    const auto found = program_.best_found(most_seconds);
    if (!found.values)
      return {.end = found.end};
    intra_plan plan;
    for (const auto& columns : columns_)
      plan.strategies.push_back(static_cast<int>(
        std::ranges::max_element(
          columns, {},
          [&](int column) { return (*found.values)[static_cast<std::size_t>(column)]; })
        - columns.begin()));
    return {plan, found.end};
  }

  /// Refuses one plan from now on.
  void refuse(const intra_plan& plan) {
    terms row;
    for (std::size_t node = 0; node < columns_.size(); ++node)
      row.emplace_back(columns_[node][static_cast<std::size_t>(plan.strategies[node])],
                       1.);
    program_.add_row(row, -infinite, static_cast<double>(row.size()) - 1);
  }

private:
  using matrix = std::vector<std::vector<double>>;

  /// Adds a column of a cost. No better plan uses a column above the bound.
  int add_column(double cost, bool is_whole) {
    const bool is_used = cost <= bound_ * (1 + 1e-9); // a sum of another order
    return program_.add_column(is_used ? cost / bound_ : 0, 0, is_used ? 1 : 0,
                               is_whole);
  }

  void add_nodes() {
    for (const auto& node : problem_.nodes) {
      terms row;
      for (const double cost : node.cost)
        row.emplace_back(add_column(cost, true), 1.);
      program_.add_row(row, 1, 1);
      auto& columns = columns_.emplace_back();
      for (const auto& [column, factor] : row)
        columns.push_back(column);
    }
  }

  // Edges between the same operators are one edge with the sums of all costs.
  std::map<std::pair<int, int>, matrix> merged_edges() const {
    std::map<std::pair<int, int>, matrix> merged;
    for (const auto& edge : problem_.edges) {
      auto [place, is_new] = merged.try_emplace({edge.from, edge.to}, edge.cost);
      if (is_new)
        continue;
      for (std::size_t i = 0; i < edge.cost.size(); ++i)
        for (std::size_t j = 0; j < edge.cost[i].size(); ++j)
          place->second[i][j] += edge.cost[i][j];
    }
    return merged;
  }

  void add_edge(int from, int to, const matrix& costs) {
    const auto& senders = columns_[static_cast<std::size_t>(from)];
    const auto& receivers = columns_[static_cast<std::size_t>(to)];
    std::vector<terms> by_receiver(receivers.size());
    for (std::size_t i = 0; i < senders.size(); ++i) {
      terms by_sender{{senders[i], -1.}};
      for (std::size_t j = 0; j < receivers.size(); ++j) {
        const int column = add_column(costs[i][j], false);
        by_sender.emplace_back(column, 1.);
        by_receiver[j].emplace_back(column, 1.);
      }
      program_.add_row(by_sender, 0, 0);
    }
    for (std::size_t j = 0; j < receivers.size(); ++j) {
      by_receiver[j].emplace_back(receivers[j], -1.);
      program_.add_row(by_receiver[j], 0, 0);
    }
  }

  // In excess of the smallest plan, and up to a sum that plans have: CBC 2.10 cuts
  // plans off a row of whole needs, and off one with slack.
  void add_memory(const memory_room& room) {
    const double unit = room.most > 0 ? room.most : 1;
    terms row;
    for (std::size_t node = 0; node < columns_.size(); ++node) {
      const auto& memory = problem_.nodes[node].memory;
      const double least =
        memory[static_cast<std::size_t>(room.smallest.strategies[node])];
      for (std::size_t i = 0; i < memory.size(); ++i)
        if (memory[i] - least > room.most + room.doubt)
          program_.exclude(columns_[node][i]);
        else if (memory[i] > least)
          row.emplace_back(columns_[node][i], (memory[i] - least) / unit);
    }
    if (!row.empty())
      program_.add_row(row, -infinite, (room.most + room.doubt) / unit);
  }

  const intra_problem& problem_;
  double bound_;
  integer_program program_;
  std::vector<std::vector<int>> columns_; // by operator, then strategy
};

/// The problem with the least cost of each operator and edge taken off. All plans lose
/// the same, so that a solver sees their differences.
intra_problem without_least_costs(intra_problem problem) {
  const auto least_of = [](const std::vector<double>& costs) {
    return *std::ranges::min_element(costs);
  };
  for (auto& node : problem.nodes)
    for (const double least = least_of(node.cost); auto& cost : node.cost)
      cost -= least;
  for (auto& edge : problem.edges) {
    double least = infinite;
    for (const auto& row : edge.cost)
      least = std::min(least, least_of(row));
    for (auto& row : edge.cost)
      for (auto& cost : row)
        cost -= least;
  }
  return problem;
}

/// Changes strategies one at a time as long as the cost falls. The solver takes costs
/// for equal that differ by less than its tolerance.
intra_plan descended(const intra_problem& problem, intra_plan plan) {
  double least = cost(problem, plan).value_or(infinite);
  for (bool has_changed = true; has_changed;) {
    has_changed = false;
    for (std::size_t node = 0; node < plan.strategies.size(); ++node) {
      const int before = plan.strategies[node];
      int best = before;
      for (int i = 0; i < std::ssize(problem.nodes[node].cost); ++i) {
        plan.strategies[node] = i;
        if (const auto paid = cost(problem, plan); paid && *paid < least) {
          least = *paid;
          best = i;
        }
      }
      plan.strategies[node] = best;
      has_changed = has_changed || best != before;
    }
  }
  return plan;
}

/// The best plan of cost `bound` or less that the time allows.
/// \pre a plan has the cost `bound`
found_plan best_below(double bound, const intra_problem& problem,
                      const std::optional<memory_room>& room, const time_limit& time) {
  strategy_program program{problem, bound, room};
  // The solver's tolerance may let a plan pass that exceeds the memory by a byte.
  while (!time.is_over()) {
    auto found = program.best_found(time.left());
    if (!found.best && found.end == search_end::proved)
      return {}; // the plan of cost `bound` satisfies all rows
    if (!found.best || !problem.memory
        || needed_memory(problem, *found.best) <= *problem.memory)
      return found;
    program.refuse(*found.best);
  }
  return {.end = search_end::out_of_time};
}

} // namespace

outcome alpa_intra(const intra_problem& problem, const search_options& options) {
  const time_limit time{static_cast<double>(options.seconds.value_or(usual_seconds))};
  auto best = smallest_plan(problem);
  if (problem.memory && needed_memory(problem, best) > *problem.memory)
    return answer{};
  const auto differences = without_least_costs(problem);
  best = descended(differences, std::move(best));
  double bound = *cost(differences, best);
  auto end = search_end::proved; // no plan costs less than 0
  const auto room =
    problem.memory && bound > 0 ? std::optional{room_of(problem, time)} : std::nullopt;
  // The cost of a plan is the unit of the next search, until costs are near 1.
  for (double unit = infinite; bound > 0 && unit > 2 * bound;) {
    unit = bound;
    auto found = best_below(unit, differences, room, time);
    end = found.end;
    if (!found.best)
      break; // the plan of the search before is the answer
    found.best = descended(differences, std::move(*found.best));
    if (const double paid = *cost(differences, *found.best); paid < bound) {
      best = std::move(*found.best);
      bound = paid;
    }
  }
  auto result = judged(problem, best);
  if (result)
    tell_end(end, *result);
  return result;
}

} // namespace troupe::planner
