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

#include <algorithm>
#include <cstddef>
#include <map>
#include <utility>

namespace troupe::planner {

namespace {

constexpr int usual_seconds = 60;
constexpr int most_refusals = 100;

using terms = std::vector<std::pair<int, double>>;

class strategy_program {
public:
  /// \param unit divides costs, because tolerances of solvers are absolute
  strategy_program(const intra_problem& problem, double unit)
    : problem_(problem), unit_(unit) {
    add_nodes();
    for (const auto& [ends, costs] : merged_edges())
      add_edge(ends.first, ends.second, costs);
    add_memory();
  }

  tl::expected<std::optional<intra_plan>, std::string> minimum(int most_seconds) const {
    const auto values = program_.minimum(most_seconds);
    if (!values)
      return tl::unexpected{values.error()};
    if (!*values)
      return std::nullopt;
    intra_plan plan;
    for (const auto& columns : columns_)
      plan.strategies.push_back(static_cast<int>(
        std::ranges::max_element(
          columns, {},
          [&](int column) { return (**values)[static_cast<std::size_t>(column)]; })
        - columns.begin()));
    return plan;
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

  void add_nodes() {
    for (const auto& node : problem_.nodes) {
      terms row;
      for (const double cost : node.cost)
        row.emplace_back(program_.add_column(cost / unit_, 0, 1, true), 1.);
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
        const int column = program_.add_column(costs[i][j] / unit_, 0, 1, false);
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

  void add_memory() {
    if (!problem_.memory)
      return;
    const double limit = *problem_.memory;
    const double unit = limit > 0 ? limit : 1;
    terms row;
    for (std::size_t node = 0; node < columns_.size(); ++node)
      for (std::size_t i = 0; i < columns_[node].size(); ++i)
        row.emplace_back(columns_[node][i], problem_.nodes[node].memory[i] / unit);
    program_.add_row(row, -infinite, limit / unit);
  }

  const intra_problem& problem_;
  double unit_;
  integer_program program_;
  std::vector<std::vector<int>> columns_; // by operator, then strategy
};

double largest_cost(const intra_problem& problem) {
  double largest = 0;
  for (const auto& node : problem.nodes)
    for (const double cost : node.cost)
      largest = std::max(largest, cost);
  for (const auto& edge : problem.edges)
    for (const auto& row : edge.cost)
      for (const double cost : row)
        largest = std::max(largest, cost);
  return largest > 0 ? largest : 1;
}

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

double needed_memory(const intra_problem& problem, const intra_plan& plan) {
  double sum = 0;
  for (std::size_t node = 0; node < plan.strategies.size(); ++node)
    sum += problem.nodes[node].memory[static_cast<std::size_t>(plan.strategies[node])];
  return sum;
}

/// The plan of least cost, of which a solver sees costs in `unit`.
tl::expected<std::optional<intra_plan>, std::string>
minimum_in(double unit, const intra_problem& problem, int most_seconds) {
  strategy_program program{problem, unit};
  // The solver's tolerance may let a plan pass that exceeds the memory by a byte.
  for (int refusals = 0; refusals < most_refusals; ++refusals) {
    auto plan = program.minimum(most_seconds);
    if (!plan || !*plan || !problem.memory
        || needed_memory(problem, **plan) <= *problem.memory)
      return plan;
    program.refuse(**plan);
  }
  return tl::unexpected{
    std::string{"the solver found only plans that exceed the memory "
                "by less than a millionth; raise 'memory'"}};
}

} // namespace

outcome alpa_intra(const intra_problem& problem, const search_options& options) {
  const int seconds = options.seconds.value_or(usual_seconds);
  const auto differences = without_least_costs(problem);
  outcome best{answer{}};
  // The cost of a plan is the unit of the next search, until costs are near 1.
  double unit = largest_cost(differences), least = unit;
  do {
    unit = least;
    const auto plan = minimum_in(unit, differences, seconds);
    if (!plan)
      return tl::unexpected{plan.error()};
    if (!*plan)
      break;
    auto found = judged(problem, **plan);
    if (!found)
      return found;
    least = cost(differences, **plan).value_or(0);
    if (!best->cost || *found->cost < *best->cost)
      best = std::move(found);
  } while (least > 0 && unit > 2 * least);
  return best;
}

} // namespace troupe::planner
