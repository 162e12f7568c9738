// SPDX-License-Identifier: BSD-3-Clause
#include "planner/searches/tarnawski_units.hpp"

#include "planner/graph.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

namespace troupe::planner {

namespace {

/// Disjoint sets of operators, each named by a member.
class joined_sets {
public:
  explicit joined_sets(std::size_t count) : parent_(count) {
    std::iota(parent_.begin(), parent_.end(), 0);
  }

  int find(int o) {
    auto& parent = parent_[static_cast<std::size_t>(o)];
    return parent == o ? o : parent = find(parent);
  }

  void join(int a, int b) { parent_[static_cast<std::size_t>(find(b))] = find(a); }

private:
  std::vector<int> parent_;
};

/// Edges between sets that the parts of a pipeline keep.
std::set<edge> edges_between(const tarnawski_problem& problem, joined_sets& sets) {
  std::set<int> forward_sets;
  for (std::size_t o = 0; o < problem.operators.size(); ++o)
    if (!problem.operators[o].backward)
      forward_sets.insert(sets.find(static_cast<int>(o)));
  std::set<edge> result;
  for (const auto& [from, to] : problem.edges) {
    const int sender = sets.find(from), receiver = sets.find(to);
    if (sender == receiver)
      continue;
    const bool from_backward =
      problem.operators[static_cast<std::size_t>(from)].backward;
    const bool to_backward = problem.operators[static_cast<std::size_t>(to)].backward;
    if (!from_backward && !to_backward)
      result.insert({sender, receiver});
    else if (from_backward && to_backward
             && (!forward_sets.contains(sender) || !forward_sets.contains(receiver)))
      result.insert({receiver, sender});
  }
  return result;
}

/// The sets that each set leads to, by name of the set.
std::map<int, std::set<int>> reachable_sets(const std::set<edge>& edges) {
  std::map<int, std::vector<int>> next;
  for (const auto& [from, to] : edges)
    next[from].push_back(to);
  std::map<int, std::set<int>> result;
  for (const auto& [from, direct] : next) {
    auto& seen = result[from];
    auto open = direct;
    while (!open.empty()) {
      const int set = open.back();
      open.pop_back();
      if (!seen.insert(set).second)
        continue;
      if (const auto more = next.find(set); more != next.end())
        open.insert(open.end(), more->second.begin(), more->second.end());
    }
  }
  return result;
}

/// Joins sets that lead to each other. Returns whether there were any.
bool join_circles(joined_sets& sets, const std::map<int, std::set<int>>& after) {
  bool result = false;
  for (const auto& [from, reached] : after)
    for (const int to : reached)
      if (const auto back = after.find(to); to != from && back != after.end()
                                            && back->second.contains(from)
                                            && sets.find(from) != sets.find(to)) {
        sets.join(from, to);
        result = true;
      }
  return result;
}

/// Units with numbers from 0, after some have gone.
tarnawski_units renumbered(const tarnawski_units& units,
                           const std::vector<bool>& is_gone) {
  tarnawski_units result{.free = units.free};
  std::vector<int> place(is_gone.size(), -1);
  for (std::size_t u = 0; u < is_gone.size(); ++u)
    if (!is_gone[u]) {
      place[u] = static_cast<int>(result.operators.size());
      result.operators.push_back(units.operators[u]);
    }
  for (const auto& [from, to] : units.edges)
    if (!is_gone[static_cast<std::size_t>(from)]
        && !is_gone[static_cast<std::size_t>(to)])
      result.edges.push_back(
        {place[static_cast<std::size_t>(from)], place[static_cast<std::size_t>(to)]});
  return result;
}

/// Whether an operator takes no time, on whatever device, and alone is a unit.
bool takes_no_time(const tarnawski_problem& problem, const std::vector<int>& unit) {
  const auto& first = problem.operators[static_cast<std::size_t>(unit.front())];
  return unit.size() == 1 && first.accelerator == 0 && first.cpu == 0
         && first.accelerator_can && !first.backward;
}

/// Whether an edge leads from or to a backward operator, for each operator.
std::vector<bool> backward_neighbours(const tarnawski_problem& problem) {
  std::vector<bool> result(problem.operators.size());
  for (const auto& [from, to] : problem.edges)
    if (problem.operators[static_cast<std::size_t>(from)].backward
        || problem.operators[static_cast<std::size_t>(to)].backward)
      result[static_cast<std::size_t>(from)] = result[static_cast<std::size_t>(to)] =
        true;
  return result;
}

/// Makes operators free that cost nothing in any part.
tarnawski_units without_free(const tarnawski_problem& problem, tarnawski_units units) {
  const auto has_backward_edge = backward_neighbours(problem);
  std::vector<bool> reads_transfers(problem.operators.size());
  for (const auto& [from, to] : problem.edges)
    if (problem.operators[static_cast<std::size_t>(from)].transfer > 0)
      reads_transfers[static_cast<std::size_t>(to)] = true;
  std::vector<bool> is_free(units.operators.size());
  for (std::size_t u = 0; u < is_free.size(); ++u) {
    const auto o = static_cast<std::size_t>(units.operators[u].front());
    is_free[u] = takes_no_time(problem, units.operators[u])
                 && problem.operators[o].size == 0 && problem.operators[o].transfer == 0
                 && !reads_transfers[o] && !has_backward_edge[o];
    if (!is_free[u])
      continue;
    units.free.push_back(static_cast<int>(o));
    // The order of the units before and behind stays.
    std::vector<int> before, behind;
    for (const auto& [from, to] : units.edges) {
      if (to == static_cast<int>(u))
        before.push_back(from);
      if (from == static_cast<int>(u))
        behind.push_back(to);
    }
    for (const int from : before)
      for (const int to : behind)
        units.edges.push_back({from, to});
  }
  std::ranges::sort(units.free);
  return renumbered(units, is_free);
}

/// Joins operators without time and readers to the unit that they read.
tarnawski_units without_leaves(const tarnawski_problem& problem,
                               tarnawski_units units) {
  std::vector<int> readers(units.operators.size()), last_read(units.operators.size()),
    reads(units.operators.size());
  std::set<edge> distinct(units.edges.begin(), units.edges.end());
  for (const auto& [from, to] : distinct) {
    ++readers[static_cast<std::size_t>(from)];
    ++reads[static_cast<std::size_t>(to)];
    last_read[static_cast<std::size_t>(to)] = from;
  }
  const auto has_backward_edge = backward_neighbours(problem);
  std::vector<bool> is_gone(units.operators.size());
  for (std::size_t u = 0; u < is_gone.size(); ++u) {
    is_gone[u] =
      takes_no_time(problem, units.operators[u]) && readers[u] == 0 && reads[u] == 1
      && !has_backward_edge[static_cast<std::size_t>(units.operators[u].front())];
    if (is_gone[u])
      units.operators[static_cast<std::size_t>(last_read[u])].push_back(
        units.operators[u].front());
  }
  return renumbered(units, is_gone);
}

} // namespace

tarnawski_units simplified(const tarnawski_problem& problem, tarnawski_units units) {
  units = without_free(problem, std::move(units));
  double size = 0;
  for (const auto& chosen : problem.operators)
    size += chosen.size;
  return size <= problem.memory ? without_leaves(problem, std::move(units)) : units;
}

void place_free(const tarnawski_problem& problem, const std::vector<int>& free,
                tarnawski_plan& plan) {
  std::vector<std::size_t> part_of(problem.operators.size());
  for (std::size_t p = 0; p < plan.parts.size(); ++p)
    for (const int o : plan.parts[p].operators)
      part_of[static_cast<std::size_t>(o)] = p;
  if (plan.parts.empty() && !free.empty())
    plan.parts.push_back({.on_cpu = problem.accelerators == 0});
  for (const int o : free) {
    auto& part = part_of[static_cast<std::size_t>(o)];
    for (const auto& [from, to] : problem.edges)
      if (to == o)
        part = std::max(part, part_of[static_cast<std::size_t>(from)]);
    plan.parts[part].operators.push_back(o);
    std::ranges::sort(plan.parts[part].operators);
  }
}

tarnawski_units units_of(const tarnawski_problem& problem) {
  joined_sets sets{problem.operators.size()};
  std::map<int, int> first_of_colour;
  for (std::size_t o = 0; o < problem.operators.size(); ++o)
    if (const auto& colour = problem.operators[o].colour)
      sets.join(first_of_colour.emplace(*colour, static_cast<int>(o)).first->second,
                static_cast<int>(o));
  auto edges = edges_between(problem, sets);
  auto after = reachable_sets(edges);
  while (join_circles(sets, after)) {
    edges = edges_between(problem, sets);
    after = reachable_sets(edges);
  }
  std::map<int, std::vector<int>> members;
  for (std::size_t o = 0; o < problem.operators.size(); ++o)
    members[sets.find(static_cast<int>(o))].push_back(static_cast<int>(o));
  // A set leads to more sets than each set behind.
  std::vector<int> order;
  for (const auto& [name, operators] : members)
    order.push_back(name);
  std::ranges::stable_sort(order, std::ranges::greater{}, [&](int name) {
    const auto reached = after.find(name);
    return reached == after.end() ? 0 : reached->second.size();
  });
  tarnawski_units result;
  std::map<int, int> place;
  for (const int name : order) {
    place[name] = static_cast<int>(result.operators.size());
    result.operators.push_back(members[name]);
  }
  for (const auto& [from, to] : edges)
    result.edges.push_back({place[from], place[to]});
  return result;
}

} // namespace troupe::planner
