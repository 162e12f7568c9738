// SPDX-License-Identifier: BSD-3-Clause
// Piper's dynamic programme, from the last stage to the first, over (operators still to
// place, devices used, replicas of later stages). Replicas of later stages bound how
// many microbatches a stage keeps. Tarnawski, Narayanan, Phanishayee, "Piper:
// Multidimensional Planner for DNN Parallelization", NeurIPS 2021, section 4.
//
//   best(I, k, s) = min over larger ideals J, t, d of
//     max(best(J, k - t d, s - d), stage J \ I of degrees t and d with s replicas
//     later)

#include "planner/graph.hpp"
#include "planner/searches/piper_knapsack.hpp"
#include "planner/searches/searches.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <set>

namespace troupe::planner {

namespace {

constexpr std::size_t most_ideals = 5'000;
constexpr double unreached = std::numeric_limits<double>::infinity();

/// Stages of the operators behind an ideal, and the first of these stages.
struct suffix_state {
  double slowest = unreached;
  std::size_t larger = 0; // the ideal where the first stage ends
  int tensor = 1, replicas = 1;
};

/// Devices of all stages behind an ideal, and replicas of all these stages.
struct used_up {
  int devices = 0, replicas = 0;

  auto operator<=>(const used_up&) const = default;
};

/// An option of an operator in a part, before replicas and microbatches are known.
struct part_option {
  const piper_option* option = nullptr;
  double moved = 0; // bytes of a microbatch over the edges that the part cuts
};

using part_options = std::vector<std::vector<part_option>>; // by operator of the part

class piper_search {
public:
  piper_search(const piper_problem& problem, std::vector<operator_set> ideals)
    : problem_(problem),
      ideals_(std::move(ideals)),
      reached_(ideals_.size()),
      edges_at_(problem.operators.size()) {
    for (std::size_t e = 0; e < problem.edges.size(); ++e) {
      const auto [from, to] = problem.edges[e].ends;
      edges_at_[static_cast<std::size_t>(from)].push_back(static_cast<int>(e));
      edges_at_[static_cast<std::size_t>(to)].push_back(static_cast<int>(e));
    }
    std::set<int> tensors;
    for (const auto& chosen : problem.operators)
      for (const auto& option : chosen.options)
        if (option.tensor <= problem.devices)
          tensors.insert(option.tensor);
    tensors_.assign(tensors.begin(), tensors.end());
    for (int d = 1; d <= problem.devices; ++d)
      if (problem.microbatches % d == 0)
        replicas_.push_back(d);
  }

  std::optional<piper_plan> best() {
    reached_.back()[{}].slowest = 0;
    for (std::size_t i = ideals_.size() - 1; i-- > 0;) {
      for (auto j = i + 1; j < ideals_.size(); ++j)
        if (!reached_[j].empty() && ideals_[i].is_subset_of(ideals_[j]))
          try_part(i, j);
      drop_dominated(reached_[i]);
    }
    const auto fastest = std::ranges::min_element(
      reached_[0], {}, [](const auto& entry) { return entry.second.slowest; });
    if (fastest == reached_[0].end())
      return std::nullopt;
    return unfold(fastest->first);
  }

private:
  using states = std::map<used_up, suffix_state>;

  /// The options of a tensor degree for all operators of a part; empty if an operator
  /// has none.
  part_options options_of(const operator_set& part, int tensor) const {
    part_options result;
    for (const int o : part.members()) {
      auto& row = result.emplace_back();
      for (const auto& option : problem_.operators[static_cast<std::size_t>(o)].options)
        if (option.tensor == tensor)
          row.push_back({&option, moved_bytes(part, o, option)});
      if (row.empty())
        return {};
    }
    return result;
  }

  double moved_bytes(const operator_set& part, int o,
                     const piper_option& option) const {
    double result = 0;
    for (const int e : edges_at_[static_cast<std::size_t>(o)]) {
      const auto& edge = problem_.edges[static_cast<std::size_t>(e)];
      const int other = edge.ends.from == o ? edge.ends.to : edge.ends.from;
      if (part.has(other))
        continue;
      const auto more = option.edge_bytes.find(e);
      result += 2 * (edge.bytes + (more == option.edge_bytes.end() ? 0 : more->second));
    }
    return result;
  }

  /// The best options of a stage.
  /// \param in_flight microbatches that the stage keeps
  std::optional<knapsack_choice> stage(const part_options& options, int replicas,
                                       int in_flight) const {
    const double d = replicas;
    std::vector<std::vector<knapsack_option>> rows;
    for (const auto& options_of_operator : options) {
      auto& row = rows.emplace_back();
      for (const auto& [option, moved] : options_of_operator)
        row.push_back(
          {option->seconds / d
             + (moved / d + 4 * (d - 1) / d * option->weights / problem_.microbatches)
                 / problem_.bandwidth,
           option->in_flight_bytes * in_flight + option->fixed_bytes});
    }
    return best_options(rows, problem_.memory);
  }

  /// Puts the operators between two ideals in a stage before all stages behind `j`.
  void try_part(std::size_t i, std::size_t j) {
    const auto part = ideals_[j].without(ideals_[i]);
    for (const int t : tensors_) {
      const auto options = options_of(part, t);
      if (options.empty())
        continue;
      for (const int d : replicas_) {
        if (t * d > problem_.devices)
          break;
        std::map<int, double> seconds_by_in_flight;
        for (const auto& [used, later] : reached_[j]) {
          const used_up key{used.devices + t * d, used.replicas + d};
          if (key.devices > problem_.devices)
            continue;
          const int in_flight = (key.replicas + d - 1) / d;
          const auto [entry, is_new] =
            seconds_by_in_flight.emplace(in_flight, unreached);
          if (is_new)
            if (const auto chosen = stage(options, d, in_flight))
              entry->second = chosen->seconds;
          const double slowest = std::max(later.slowest, entry->second);
          if (slowest == unreached)
            continue;
          auto& state = reached_[i][key];
          if (slowest < state.slowest)
            state = {slowest, j, t, d};
        }
      }
    }
  }

  /// Drops states that are no faster than a state with no more devices and replicas.
  static void drop_dominated(states& all) {
    states kept;
    for (const auto& worse : all)
      if (std::ranges::none_of(kept, [&](const auto& better) {
            return better.first.devices <= worse.first.devices
                   && better.first.replicas <= worse.first.replicas
                   && better.second.slowest <= worse.second.slowest;
          }))
        kept.insert(worse);
    all = std::move(kept);
  }

  piper_plan unfold(used_up used) const {
    piper_plan result;
    for (std::size_t i = 0; i + 1 < ideals_.size();) {
      const auto& [slowest, j, t, d] = reached_[i].at(used);
      const auto part = ideals_[j].without(ideals_[i]);
      const auto options = options_of(part, t);
      const auto chosen = stage(options, d, (used.replicas + d - 1) / d);
      auto& added = result.stages.emplace_back();
      added.operators = part.members();
      added.tensor = t;
      added.replicas = d;
      for (std::size_t o = 0; o < options.size(); ++o)
        added.options.push_back(
          options[o][static_cast<std::size_t>(chosen->options[o])].option->name);
      used = {used.devices - t * d, used.replicas - d};
      i = j;
    }
    return result;
  }

  const piper_problem& problem_;
  std::vector<operator_set> ideals_;
  std::vector<states> reached_; // by ideal
  std::vector<std::vector<int>> edges_at_;
  std::vector<int> tensors_, replicas_;
};

} // namespace

outcome piper(const piper_problem& problem, const search_options&) {
  std::vector<edge> edges;
  for (const auto& e : problem.edges)
    edges.push_back(e.ends);
  auto ideals =
    ideals_of(static_cast<int>(problem.operators.size()), edges, most_ideals);
  if (!ideals)
    return tl::unexpected{"the graph has more than " + std::to_string(most_ideals)
                          + " ideals, the most of planner piper: take a baseline as "
                            "mincut"};
  const auto best = piper_search{problem, std::move(*ideals)}.best();
  return best ? judged(problem, *best) : answer{};
}

} // namespace troupe::planner
