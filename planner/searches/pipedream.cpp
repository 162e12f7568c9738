// SPDX-License-Identifier: BSD-3-Clause
// PipeDream's partitioner: the least slowest stage or link over (operators so far,
// workers so far), and the same within a machine for each stage between machines.
// Narayanan et al., "PipeDream: Generalized Pipeline Parallelism for DNN Training",
// SOSP 2019, section 3.1.
//
//   A(j, m) = min over i, r of max(A(i, m - r), link at i, stage of i..j on r workers)
//
// The paper has chains. Here i and j are ideals of the graph, which are the prefixes of
// a chain.

#include "planner/graph.hpp"
#include "planner/searches/searches.hpp"

#include <algorithm>
#include <map>
#include <tuple>

namespace troupe::planner {

namespace {

constexpr std::size_t most_ideals = 20'000;

/// Stages of the operators between two ideals on all members of a level.
struct level_plan {
  static constexpr double infinite_seconds = 1e300;

  double seconds = infinite_seconds; ///< Infinite: nothing fits.
  std::vector<pipedream_stage> stages;
};

/// Sums over the operators of an ideal.
struct ideal_sums {
  double work = 0, weights = 0, outputs = 0;
};

class pipedream_search {
public:
  pipedream_search(const pipedream_problem& problem, std::vector<operator_set> ideals)
    : problem_(problem), ideals_(std::move(ideals)) {
    const auto count = static_cast<int>(problem.operators.size());
    consumers_.assign(problem.operators.size(), operator_set{count});
    for (const auto& [from, to] : problem.edges)
      consumers_[static_cast<std::size_t>(from)].add(to);
    for (const auto& ideal : ideals_) {
      auto& sums = sums_.emplace_back();
      for (const int o : ideal.members()) {
        const auto& chosen = problem.operators[static_cast<std::size_t>(o)];
        sums.work += chosen.forward + chosen.backward;
        sums.weights += chosen.parameter_bytes;
        sums.outputs += chosen.output_bytes;
      }
    }
  }

  /// The best plan of the operators of ideal `high` that ideal `low` lacks.
  const level_plan& solve(std::size_t level, std::size_t low, std::size_t high) {
    const std::tuple key{level, low, high};
    if (const auto known = known_.find(key); known != known_.end())
      return known->second;
    return known_.emplace(key, search(level, low, high)).first->second;
  }

private:
  /// The last stage of a state, and the state before.
  struct step {
    double seconds = level_plan::infinite_seconds;
    std::size_t previous = 0; // an index of `inside`
    int replicas = 0;
  };

  /// Bytes that operators up to an ideal send to later ones, between `low` and `high`.
  double bytes_at(const operator_set& ideal, const operator_set& low,
                  const operator_set& high) const {
    double result = 0;
    const auto later = high.without(ideal);
    for (const int o : ideal.without(low).members())
      if (consumers_[static_cast<std::size_t>(o)].intersects(later))
        result += problem_.operators[static_cast<std::size_t>(o)].output_bytes;
    return result;
  }

  bool fits(double weights, double outputs, int remaining, int replicas) const {
    const double versions = (remaining + replicas - 1) / replicas;
    return !problem_.memory || versions * (weights + outputs) <= *problem_.memory;
  }

  level_plan search(std::size_t level, std::size_t low, std::size_t high) {
    const auto [workers, bandwidth] = problem_.levels[level];
    std::vector<std::size_t> inside;
    std::vector<double> bytes;
    for (auto i = low; i <= high; ++i)
      if (ideals_[low].is_subset_of(ideals_[i])
          && ideals_[i].is_subset_of(ideals_[high])) {
        inside.push_back(i);
        bytes.push_back(bytes_at(ideals_[i], ideals_[low], ideals_[high]));
      }
    const auto states = static_cast<std::size_t>(workers) + 1;
    std::vector<step> best(inside.size() * states);
    best[0].seconds = 0;
    const auto last = inside.size() - 1;
    for (std::size_t j = 1; j < inside.size(); ++j)
      for (std::size_t i = 0; i < j; ++i) {
        if (!ideals_[inside[i]].is_subset_of(ideals_[inside[j]]))
          continue;
        const auto &before = sums_[inside[i]], &after = sums_[inside[j]];
        const double weights = after.weights - before.weights;
        const double outputs = after.outputs - before.outputs;
        const double work = level == 0 ? after.work - before.work
                                       : solve(level - 1, inside[i], inside[j]).seconds;
        for (int r = 1; r <= (problem_.straight ? 1 : workers); ++r) {
          const double stage =
            stage_seconds(problem_.model, work, weights, r, bandwidth);
          const double links =
            std::max(i == 0 ? 0 : receiving(bytes[i], bandwidth, r),
                     i == 0 || j == last ? 0 : sending(bytes[j], bandwidth, r));
          extend(best, states, i, j, r, std::max(stage, links), workers,
                 [&, all = workers](int used) {
                   return level > 0 || fits(weights, outputs, all - used, r);
                 });
        }
      }
    return unfold(best, states, inside, level);
  }

  // A link's narrowest end is known only with both stages: each end bounds the link by
  // itself. The first stage does not bound a link of the released optimizer.
  double receiving(double bytes, double bandwidth, int replicas) const {
    return link_seconds(problem_.model, bytes, bandwidth, replicas, replicas, true);
  }
  double sending(double bytes, double bandwidth, int replicas) const {
    return link_seconds(problem_.model, bytes, bandwidth, replicas, replicas, false);
  }

  /// Appends a stage of `replicas` to all plans up to state i.
  template <class Fits>
  static void extend(std::vector<step>& best, std::size_t states, std::size_t i,
                     std::size_t j, int replicas, double seconds, int workers,
                     const Fits& fits_after) {
    for (int used = 0; used + replicas <= workers; ++used) {
      const auto& previous = best[i * states + static_cast<std::size_t>(used)];
      if (previous.seconds >= level_plan::infinite_seconds || !fits_after(used))
        continue;
      auto& state = best[j * states + static_cast<std::size_t>(used + replicas)];
      const double slowest = std::max(previous.seconds, seconds);
      if (slowest < state.seconds)
        state = {slowest, i, replicas};
    }
  }

  level_plan unfold(const std::vector<step>& best, std::size_t states,
                    const std::vector<std::size_t>& inside, std::size_t level) {
    level_plan result;
    auto used = states - 1;
    auto j = inside.size() - 1;
    result.seconds = best[j * states + used].seconds;
    if (result.seconds >= level_plan::infinite_seconds)
      return result;
    while (j > 0) {
      const auto& [seconds, i, replicas] = best[j * states + used];
      auto& stage = result.stages.emplace_back();
      stage.operators = ideals_[inside[j]].without(ideals_[inside[i]]).members();
      stage.replicas = replicas;
      if (level > 0)
        stage.inner = solve(level - 1, inside[i], inside[j]).stages;
      used -= static_cast<std::size_t>(replicas);
      j = i;
    }
    std::ranges::reverse(result.stages);
    return result;
  }

  const pipedream_problem& problem_;
  std::vector<operator_set> ideals_, consumers_;
  std::vector<ideal_sums> sums_;
  std::map<std::tuple<std::size_t, std::size_t, std::size_t>, level_plan> known_;
};

} // namespace

outcome pipedream(const pipedream_problem& problem, const search_options&) {
  auto ideals =
    ideals_of(static_cast<int>(problem.operators.size()), problem.edges, most_ideals);
  if (!ideals)
    return tl::unexpected{
      "the graph has more than " + std::to_string(most_ideals)
      + " ideals, the most of planner pipedream: take a baseline as mincut"};
  const auto last = ideals->size() - 1;
  pipedream_search search{problem, std::move(*ideals)};
  const auto& best = search.solve(problem.levels.size() - 1, 0, last);
  if (best.seconds >= level_plan::infinite_seconds)
    return answer{};
  return judged(problem, pipedream_plan{best.stages});
}

} // namespace troupe::planner
