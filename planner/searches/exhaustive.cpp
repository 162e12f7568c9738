// SPDX-License-Identifier: BSD-3-Clause
// All plans, each judged by the kind's cost model: the optimum of small cases, to which
// tables compare all other planners. Nothing here is shared with their searches.

#include "planner/graph.hpp"
#include "planner/searches/enumeration.hpp"
#include "planner/searches/searches.hpp"

#include <algorithm>
#include <map>
#include <set>

namespace troupe::planner {

namespace {

constexpr int most_plans = 300'000;

/// The best plan so far.
template <class Problem, class Plan>
class best_plan {
public:
  explicit best_plan(const Problem& problem) : problem_(problem) {
    // nop
  }

  /// Counts a plan that breaks a rule. Returns false after too many plans.
  bool skip() { return ++plans_ <= most_plans; }

  /// Judges a plan, which may break a rule. Returns false after too many plans.
  bool judge(const Plan& candidate) {
    if (!skip())
      return false;
    const auto seconds = cost(problem_, candidate);
    if (seconds && (!best_.cost || *seconds < *best_.cost))
      best_ = {*seconds, any_plan{candidate}};
    return true;
  }

  /// \param is_complete the enumeration has visited all plans
  outcome result(bool is_complete) const {
    if (!is_complete)
      return tl::unexpected{"the case has more than " + std::to_string(most_plans)
                            + " plans, the most of planner exhaustive: take another "
                              "planner"};
    return best_;
  }

private:
  const Problem& problem_;
  answer best_;
  int plans_ = 0;
};

/// The number of each operator's device, for sets of operators that share a device.
std::vector<int> sets_of_colours(const tarnawski_problem& problem) {
  std::map<int, int> set_of_colour;
  std::vector<int> result;
  int sets = 0;
  for (const auto& o : problem.operators) {
    if (o.colour && set_of_colour.contains(*o.colour)) {
      result.push_back(set_of_colour[*o.colour]);
      continue;
    }
    if (o.colour)
      set_of_colour[*o.colour] = sets;
    result.push_back(sets++);
  }
  return result;
}

/// Sorts parts so that no forward edge leads back; false if there is no such order.
bool sort_as_pipeline(const tarnawski_problem& problem, tarnawski_plan& plan) {
  std::map<int, std::size_t> part_of;
  for (std::size_t p = 0; p < plan.parts.size(); ++p)
    for (const int o : plan.parts[p].operators)
      part_of[o] = p;
  std::set<std::pair<std::size_t, std::size_t>> before;
  for (const auto& [from, to] : problem.edges)
    if (!problem.operators[static_cast<std::size_t>(from)].backward
        && !problem.operators[static_cast<std::size_t>(to)].backward
        && part_of[from] != part_of[to])
      before.emplace(part_of[from], part_of[to]);
  std::vector<std::size_t> order;
  std::vector<bool> is_placed(plan.parts.size());
  while (order.size() < plan.parts.size()) {
    const auto placed = order.size();
    for (std::size_t p = 0; p < plan.parts.size(); ++p)
      if (!is_placed[p] && std::ranges::all_of(before, [&](const auto& pair) {
            return pair.second != p || is_placed[pair.first];
          })) {
        is_placed[p] = true;
        order.push_back(p);
      }
    if (order.size() == placed)
      return false;
  }
  tarnawski_plan sorted;
  for (const auto p : order)
    sorted.parts.push_back(plan.parts[p]);
  plan = std::move(sorted);
  return true;
}

} // namespace

outcome exhaustive_pipedream(const pipedream_problem& problem, const search_options&) {
  if (problem.levels.size() > 1)
    return tl::unexpected{std::string{
      "planner exhaustive has no levels of machines: take planner pipedream"}};
  best_plan<pipedream_problem, pipedream_plan> best{problem};
  const int workers = problem.levels.front().workers;
  const bool is_complete =
    for_each_chain(static_cast<int>(problem.operators.size()), problem.edges, workers,
                   [&](const stage_chain& stages) {
                     return for_each_composition(
                       workers, static_cast<int>(stages.size()),
                       [&](const std::vector<int>& replicas) {
                         pipedream_plan candidate;
                         for (std::size_t s = 0; s < stages.size(); ++s)
                           candidate.stages.push_back({stages[s], replicas[s], {}});
                         return best.judge(candidate);
                       });
                   });
  return best.result(is_complete);
}

outcome exhaustive_tarnawski(const tarnawski_problem& problem, const search_options&) {
  best_plan<tarnawski_problem, tarnawski_plan> best{problem};
  const auto set_of = sets_of_colours(problem);
  const int devices = problem.accelerators + problem.cpus;
  const std::vector<int> bases(static_cast<std::size_t>(std::ranges::max(set_of)) + 1,
                               devices);
  const bool is_complete =
    for_each_number(bases, [&](const std::vector<int>& device_of_set) {
      tarnawski_plan candidate;
      for (int d = 0; d < devices; ++d) {
        tarnawski_part part{.on_cpu = d >= problem.accelerators};
        for (std::size_t o = 0; o < set_of.size(); ++o)
          if (device_of_set[static_cast<std::size_t>(set_of[o])] == d)
            part.operators.push_back(static_cast<int>(o));
        if (!part.operators.empty())
          candidate.parts.push_back(std::move(part));
      }
      if (problem.split == tarnawski_split::pipeline
          && !sort_as_pipeline(problem, candidate))
        return best.skip();
      return best.judge(candidate);
    });
  return best.result(is_complete);
}

outcome exhaustive_piper(const piper_problem& problem, const search_options&) {
  best_plan<piper_problem, piper_plan> best{problem};
  std::vector<edge> edges;
  for (const auto& e : problem.edges)
    edges.push_back(e.ends);
  std::vector<std::pair<int, int>> degrees; // of tensors and replicas
  std::set<int> tensors;
  for (const auto& chosen : problem.operators)
    for (const auto& option : chosen.options)
      tensors.insert(option.tensor);
  for (const int t : tensors)
    for (int d = 1; t * d <= problem.devices; ++d)
      if (problem.microbatches % d == 0)
        degrees.emplace_back(t, d);
  const auto options_of = [&](int o, int tensor) {
    std::vector<std::string> result;
    for (const auto& option : problem.operators[static_cast<std::size_t>(o)].options)
      if (option.tensor == tensor)
        result.push_back(option.name);
    return result;
  };
  const bool is_complete = for_each_chain(
    static_cast<int>(problem.operators.size()), edges, problem.devices,
    [&](const stage_chain& stages) {
      const std::vector<int> bases(stages.size(), static_cast<int>(degrees.size()));
      return for_each_number(bases, [&](const std::vector<int>& picks) {
        piper_plan candidate;
        std::vector<std::vector<std::string>> names; // of each operator, by stage
        std::vector<int> name_counts;
        int devices = 0;
        for (std::size_t s = 0; s < stages.size(); ++s) {
          const auto [t, d] = degrees[static_cast<std::size_t>(picks[s])];
          devices += t * d;
          candidate.stages.push_back({stages[s], t, d, {}});
          for (const int o : stages[s]) {
            names.push_back(options_of(o, t));
            name_counts.push_back(static_cast<int>(names.back().size()));
          }
        }
        if (devices > problem.devices)
          return best.skip();
        return best.skip()
               && for_each_number(name_counts, [&](const std::vector<int>& chosen) {
                    std::size_t next = 0;
                    for (auto& stage : candidate.stages) {
                      stage.options.clear();
                      for (std::size_t o = 0; o < stage.operators.size(); ++o, ++next)
                        stage.options.push_back(
                          names[next][static_cast<std::size_t>(chosen[next])]);
                    }
                    return best.judge(candidate);
                  });
      });
    });
  return best.result(is_complete);
}

outcome exhaustive_alpa(const alpa_problem& problem, const search_options&) {
  best_plan<alpa_problem, alpa_plan> best{problem};
  alpa_plan candidate;
  const std::function<bool(int, int)> extend = [&](int layer, int devices) {
    if (!best.skip()) // plans that lack devices or layers count too
      return false;
    if (layer == problem.layers)
      return best.judge(candidate);
    for (const auto& c : problem.costs) {
      const int size = problem.submeshes[static_cast<std::size_t>(c.submesh)].devices();
      if (c.first != layer || devices + size > problem.mesh.devices())
        continue;
      candidate.stages.push_back({c.first, c.last, c.submesh, c.config});
      const bool goes_on = extend(c.last + 1, devices + size);
      candidate.stages.pop_back();
      if (!goes_on)
        return false;
    }
    return true;
  };
  return best.result(extend(0, 0));
}

outcome exhaustive_dapple(const dapple_problem& problem, const search_options&) {
  best_plan<dapple_problem, dapple_plan> best{problem};
  const auto layers = static_cast<int>(problem.layers.size());
  bool is_complete = true;
  for (int parts = 1; is_complete && parts <= std::min(layers, problem.devices());
       ++parts) {
    const std::vector<int> bases(static_cast<std::size_t>(problem.devices()), parts);
    is_complete = for_each_number(bases, [&](const std::vector<int>& stage_of_device) {
      return for_each_composition(
        layers, parts, [&](const std::vector<int>& layers_of_stage) {
          dapple_plan candidate;
          int first = 0;
          for (int s = 0; s < parts; ++s) {
            const int count = layers_of_stage[static_cast<std::size_t>(s)];
            auto& stage =
              candidate.stages.emplace_back(dapple_stage{first, first + count - 1, {}});
            first += count;
            for (std::size_t d = 0; d < stage_of_device.size(); ++d)
              if (stage_of_device[d] == s)
                stage.devices.push_back(static_cast<int>(d));
            if (stage.devices.empty())
              return best.skip();
          }
          return best.judge(candidate);
        });
    });
  }
  return best.result(is_complete);
}

outcome exhaustive_placement(const placement_problem& problem, const search_options&) {
  best_plan<placement_problem, placement_plan> best{problem};
  const std::vector<int> bases(problem.operators.size(), problem.devices());
  return best.result(for_each_number(
    bases, [&](const std::vector<int>& devices) { return best.judge({devices}); }));
}

outcome exhaustive_intra(const intra_problem& problem, const search_options&) {
  best_plan<intra_problem, intra_plan> best{problem};
  std::vector<int> bases;
  for (const auto& node : problem.nodes)
    bases.push_back(static_cast<int>(node.cost.size()));
  return best.result(for_each_number(bases, [&](const std::vector<int>& strategies) {
    return best.judge({strategies});
  }));
}

outcome exhaustive_options(const options_problem& problem, const search_options&) {
  best_plan<options_problem, options_plan> best{problem};
  bool is_complete = true;
  for (const auto& row : problem.rows)
    is_complete = is_complete && best.judge({row.values});
  return best.result(is_complete);
}

} // namespace troupe::planner
