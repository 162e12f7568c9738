// SPDX-License-Identifier: BSD-3-Clause
// Tarnawski's dynamic programme: a pipeline is a chain of growing ideals, a device a
// difference of two. Tarnawski et al., "Efficient Algorithms for Device Placement of
// DNN Graph Operators", NeurIPS 2020, section 5.1.
//
//   best(I, a, c) = min over ideals J in I of
//     max(best(J, a - 1, c), accelerator's load of I \ J), the same with a CPU
//
// Only differences with a load up to a known pipeline's are tried.

#include "planner/graph.hpp"
#include "planner/searches/searches.hpp"
#include "planner/searches/tarnawski_units.hpp"

#include <algorithm>
#include <limits>
#include <set>
#include <unordered_map>

namespace troupe::planner {

namespace {

constexpr std::size_t most_ideals = 400'000;
constexpr double unloaded = std::numeric_limits<double>::infinity();

/// An output that other units read.
struct sent_output {
  int unit = 0;
  operator_set readers; // units other than `unit`
  double transfer = 0;
};

/// Sums over the units of a part, which grow with the part, and what the part sends and
/// receives.
struct part_load {
  double accelerator = 0, cpu = 0, size = 0, transfers = 0;
  int above_limit = 0; // transfers above the limit, which `transfers` leaves out
  bool accelerator_can = true;
};

class tarnawski_search {
public:
  explicit tarnawski_search(const tarnawski_problem& problem)
    : problem_(problem),
      units_(simplified(problem, units_of(problem))),
      count_(static_cast<int>(units_.operators.size())) {
    std::vector<int> unit_of(problem.operators.size());
    for (std::size_t u = 0; u < units_.operators.size(); ++u) {
      auto& sums = sums_.emplace_back();
      for (const int o : units_.operators[u]) {
        const auto& chosen = problem.operators[static_cast<std::size_t>(o)];
        unit_of[static_cast<std::size_t>(o)] = static_cast<int>(u);
        sums.accelerator += chosen.accelerator;
        sums.cpu += chosen.cpu;
        sums.size += chosen.size;
        sums.accelerator_can = sums.accelerator_can && chosen.accelerator_can;
      }
    }
    std::vector<operator_set> readers(problem.operators.size(), operator_set{count_});
    for (const auto& [from, to] : problem.edges)
      readers[static_cast<std::size_t>(from)].add(
        unit_of[static_cast<std::size_t>(to)]);
    outputs_at_.resize(units_.operators.size());
    for (std::size_t o = 0; o < readers.size(); ++o) {
      readers[o].remove(unit_of[o]);
      if (readers[o].empty() || problem.operators[o].transfer == 0)
        continue;
      const auto number = outputs_.size();
      outputs_.push_back({unit_of[o], readers[o], problem.operators[o].transfer});
      outputs_at_[static_cast<std::size_t>(unit_of[o])].push_back(number);
      for (const int reader : readers[o].members())
        outputs_at_[static_cast<std::size_t>(reader)].push_back(number);
    }
  }

  /// The least largest load of a pipeline, and its parts; absent if nothing fits. The
  /// error is one sentence.
  tl::expected<std::optional<tarnawski_plan>, std::string> best() {
    // Prefixes of the topological order give a first pipeline, whose load bounds the
    // differences of ideals to try.
    ideals_.assign(1, operator_set{count_});
    for (int u = 0; u < count_; ++u) {
      ideals_.push_back(ideals_.back());
      ideals_.back().add(u);
    }
    auto limit = search(unloaded) ? load_of(unfold()) : unloaded;
    auto ideals = ideals_of(count_, units_.edges, most_ideals);
    if (!ideals)
      return tl::unexpected{
        "the graph has more than " + std::to_string(most_ideals)
        + " ideals, the most of planner tarnawski: take a baseline as mincut"};
    ideals_ = std::move(*ideals);
    // Sums with a load far above the answer lose the answer's digits, so a search with
    // the new bound follows.
    constexpr double most_ratio = 1e4;
    std::optional<tarnawski_plan> result;
    for (;;) {
      // Loads are sums in another order than the judge's.
      constexpr double rounding = 1 + 1e-9;
      if (!search(limit * rounding))
        return result;
      result = unfold();
      const double load = load_of(*result);
      if (load * most_ratio >= limit)
        return result;
      limit = load;
    }
  }

private:
  struct state {
    double load = unloaded;
    std::size_t previous = 0;
    bool on_cpu = false;
  };

  double load_of(const tarnawski_plan& plan) const {
    return cost(problem_, plan).value_or(unloaded);
  }

  bool crosses(const sent_output& output, const operator_set& part) const {
    return part.has(output.unit) ? !output.readers.is_subset_of(part)
                                 : output.readers.intersects(part);
  }

  /// The load of a part and one more unit.
  part_load extended(const part_load& load, const operator_set& part, int unit) const {
    const auto& more = sums_[static_cast<std::size_t>(unit)];
    auto result = load;
    result.accelerator += more.accelerator;
    result.cpu += more.cpu;
    result.size += more.size;
    result.accelerator_can = load.accelerator_can && more.accelerator_can;
    auto larger = part;
    larger.add(unit);
    for (const auto number : outputs_at_[static_cast<std::size_t>(unit)]) {
      const auto& output = outputs_[number];
      const int more_crossings = static_cast<int>(crosses(output, larger))
                                 - static_cast<int>(crosses(output, part));
      if (output.transfer > limit_)
        result.above_limit += more_crossings;
      else
        result.transfers += output.transfer * more_crossings;
    }
    return result;
  }

  bool accelerator_fits(const part_load& load) const {
    return problem_.accelerators > 0 && load.accelerator_can
           && load.size <= problem_.memory;
  }

  std::size_t states() const {
    return static_cast<std::size_t>(problem_.accelerators + 1)
           * static_cast<std::size_t>(problem_.cpus + 1);
  }

  state& at(std::size_t ideal, int accelerators, int cpus) {
    return best_[ideal * states()
                 + static_cast<std::size_t>(accelerators)
                     * static_cast<std::size_t>(problem_.cpus + 1)
                 + static_cast<std::size_t>(cpus)];
  }

  /// Larger ideals with one unit more.
  void connect() {
    const auto hash = [](const operator_set& set) { return set.hash(); };
    std::unordered_map<operator_set, std::size_t, decltype(hash)> numbers{
      ideals_.size() * 2, hash};
    for (std::size_t i = 0; i < ideals_.size(); ++i)
      numbers.emplace(ideals_[i], i);
    larger_.assign(ideals_.size(), {});
    for (std::size_t i = 0; i < ideals_.size(); ++i) {
      auto next = ideals_[i];
      for (int u = 0; u < count_; ++u) {
        if (next.has(u))
          continue;
        next.add(u);
        if (const auto number = numbers.find(next); number != numbers.end())
          larger_[i].push_back({u, number->second});
        next.remove(u);
      }
    }
  }

  /// Fills the states of all ideals. Returns whether a pipeline has a load up to
  /// `limit`.
  bool search(double limit) {
    limit_ = limit;
    connect();
    best_.assign(ideals_.size() * states(), {});
    for (int a = 0; a <= problem_.accelerators; ++a)
      for (int c = 0; c <= problem_.cpus; ++c)
        at(0, a, c).load = 0;
    std::vector<std::size_t> visited(ideals_.size(), ideals_.size());
    for (std::size_t i = 0; i + 1 < ideals_.size(); ++i) {
      if (at(i, problem_.accelerators, problem_.cpus).load <= limit)
        try_parts(i, visited);
    }
    const auto result =
      at(ideals_.size() - 1, problem_.accelerators, problem_.cpus).load;
    return result <= limit && result < unloaded;
  }

  /// Appends all parts to the pipelines up to ideal `i`.
  void try_parts(std::size_t i, std::vector<std::size_t>& visited) {
    struct open_part {
      std::size_t ideal;
      operator_set part;
      part_load load;
    };
    std::vector<open_part> open{{i, operator_set{count_}, {}}};
    while (!open.empty()) {
      const auto current = std::move(open.back());
      open.pop_back();
      for (const auto& [unit, j] : larger_[current.ideal]) {
        if (visited[j] == i)
          continue;
        visited[j] = i;
        const auto load = extended(current.load, current.part, unit);
        const bool by_accelerator =
          accelerator_fits(load) && load.accelerator <= limit_;
        const bool by_cpu = problem_.cpus > 0 && load.cpu <= limit_;
        if (!by_accelerator && !by_cpu)
          continue; // and no larger part fits
        if (by_accelerator && load.above_limit == 0)
          append(i, j, load.accelerator + load.transfers, false);
        if (by_cpu)
          append(i, j, load.cpu, true);
        auto larger = current.part;
        larger.add(unit);
        open.push_back({j, std::move(larger), load});
      }
    }
  }

  void append(std::size_t i, std::size_t j, double load, bool on_cpu) {
    for (int a = on_cpu ? 0 : 1; a <= problem_.accelerators; ++a)
      for (int c = on_cpu ? 1 : 0; c <= problem_.cpus; ++c) {
        const auto& previous = at(i, a - (on_cpu ? 0 : 1), c - (on_cpu ? 1 : 0));
        auto& next = at(j, a, c);
        const double largest = std::max(previous.load, load);
        if (largest < next.load)
          next = {largest, i, on_cpu};
      }
  }

  tarnawski_plan unfold() {
    tarnawski_plan result;
    int accelerators = problem_.accelerators, cpus = problem_.cpus;
    for (auto j = ideals_.size() - 1; j > 0;) {
      const auto [load, i, on_cpu] = at(j, accelerators, cpus);
      auto& part = result.parts.emplace_back();
      part.on_cpu = on_cpu;
      for (const int unit : ideals_[j].without(ideals_[i]).members()) {
        const auto& operators = units_.operators[static_cast<std::size_t>(unit)];
        part.operators.insert(part.operators.end(), operators.begin(), operators.end());
      }
      std::ranges::sort(part.operators);
      (on_cpu ? cpus : accelerators) -= 1;
      j = i;
    }
    std::ranges::reverse(result.parts);
    place_free(problem_, units_.free, result);
    return result;
  }

  const tarnawski_problem& problem_;
  tarnawski_units units_;
  int count_ = 0;           // of units
  double limit_ = unloaded; // of a load
  std::vector<part_load> sums_;
  std::vector<sent_output> outputs_;
  std::vector<std::vector<std::size_t>> outputs_at_; // those that a unit makes or reads
  std::vector<operator_set> ideals_;
  std::vector<std::vector<std::pair<int, std::size_t>>> larger_; // unit, ideal
  std::vector<state> best_;
};

/// Whether a backward operator shares its colour with no forward operator.
bool has_lone_backward(const tarnawski_problem& problem) {
  std::set<int> forward_colours;
  for (const auto& op : problem.operators)
    if (!op.backward && op.colour)
      forward_colours.insert(*op.colour);
  return std::ranges::any_of(problem.operators, [&](const auto& op) {
    return op.backward && !(op.colour && forward_colours.contains(*op.colour));
  });
}

} // namespace

outcome tarnawski(const tarnawski_problem& problem, const search_options&) {
  if (problem.split != tarnawski_split::pipeline)
    return tl::unexpected{
      std::string{"planner tarnawski splits a graph as a pipeline only: take "
                  "tarnawski_ip for the splits contiguous and any"}};
  tarnawski_search search{problem};
  const auto best = search.best();
  if (!best)
    return tl::unexpected{best.error()};
  auto result = *best ? judged(problem, **best) : answer{};
  if (result && has_lone_backward(problem))
    result->remark = "backward operators without a forward one of their colour keep "
                     "the order of their edges: another order may cost less";
  return result;
}

} // namespace troupe::planner
