// SPDX-License-Identifier: BSD-3-Clause
// Other planners on PipeDream's problem: each states the problem in its own terms, and
// predicts by its own formula. The judge of the kind says how far that is from
// PipeDream's cost.

#include "planner/layer_chain.hpp"
#include "planner/searches/searches.hpp"

#include <algorithm>
#include <limits>
#include <numeric>

namespace troupe::planner {

namespace {

/// Minibatches in a batch of planners that plan a whole batch.
int minibatches(const pipedream_problem& problem) {
  return 4 * problem.levels.front().workers;
}

outcome refused_levels(const char* name) {
  return tl::unexpected{std::string{"planner "} + name
                        + " has no levels of machines: take planner pipedream"};
}

/// Gives each worker that no stage has to a stage, which costs the least so: a plan of
/// the kind uses all workers.
pipedream_plan with_all_workers(const pipedream_problem& problem, pipedream_plan plan) {
  auto smaller = problem; // with the workers that are given so far
  auto& used = smaller.levels.front().workers;
  used = 0;
  for (const auto& stage : plan.stages)
    used += stage.replicas;
  while (used < problem.levels.front().workers) {
    ++used;
    std::vector<double> costs;
    for (auto& stage : plan.stages) {
      ++stage.replicas;
      costs.push_back(
        cost(smaller, plan).value_or(std::numeric_limits<double>::infinity()));
      --stage.replicas;
    }
    ++plan
        .stages[static_cast<std::size_t>(std::ranges::min_element(costs)
                                         - costs.begin())]
        .replicas;
  }
  return plan;
}

std::vector<int> numbers_between(int first, int last) {
  std::vector<int> result(static_cast<std::size_t>(last - first + 1));
  std::iota(result.begin(), result.end(), first);
  return result;
}

/// The plan of another kind in an answer; null without one.
template <class Plan>
const Plan* plan_in(const outcome& found) {
  return found && found->best ? &std::get<Plan>(*found->best) : nullptr;
}

} // namespace

outcome tarnawski_on_pipedream(const pipedream_problem& problem,
                               const search_options& options) {
  if (problem.levels.size() > 1)
    return refused_levels("tarnawski");
  const auto [workers, bandwidth] = problem.levels.front();
  tarnawski_problem stated{
    .edges = problem.edges,
    .accelerators = workers,
    .memory = problem.memory.value_or(std::numeric_limits<double>::max())};
  for (const auto& o : problem.operators)
    stated.operators.push_back({.name = o.name,
                                .accelerator = o.forward + o.backward,
                                .size = o.parameter_bytes + o.output_bytes,
                                .transfer = 2 * o.output_bytes / bandwidth});
  const auto found = tarnawski(stated, options);
  const auto* const parts = plan_in<tarnawski_plan>(found);
  if (!parts)
    return found;
  pipedream_plan result;
  for (const auto& part : parts->parts)
    result.stages.push_back({part.operators, 1, {}});
  return answer{found->cost, any_plan{with_all_workers(problem, std::move(result))}};
}

outcome piper_on_pipedream(const pipedream_problem& problem,
                           const search_options& options) {
  if (problem.levels.size() > 1)
    return refused_levels("piper");
  const auto [workers, bandwidth] = problem.levels.front();
  // A multiple of many numbers of replicas, which have to divide the microbatches.
  constexpr int microbatches = 720'720;
  piper_problem stated{.devices = workers,
                       .microbatches = microbatches,
                       .bandwidth = bandwidth,
                       .memory =
                         problem.memory.value_or(std::numeric_limits<double>::max())};
  for (const auto& o : problem.operators)
    stated.operators.push_back(
      {o.name,
       {{.name = "keep",
         .seconds = o.forward + o.backward,
         // PipeDream sums gradients after each minibatch.
         .weights = o.parameter_bytes * microbatches,
         .in_flight_bytes = o.parameter_bytes + o.output_bytes}}});
  for (const auto& e : problem.edges)
    stated.edges.push_back(
      {e, problem.operators[static_cast<std::size_t>(e.from)].output_bytes});
  const auto found = piper(stated, options);
  const auto* const stages = plan_in<piper_plan>(found);
  if (!stages)
    return found;
  pipedream_plan result;
  for (const auto& stage : stages->stages)
    result.stages.push_back({stage.operators, stage.replicas, {}});
  return answer{found->cost, any_plan{with_all_workers(problem, std::move(result))}};
}

outcome dapple_on_pipedream(const pipedream_problem& problem,
                            const search_options& options) {
  if (problem.levels.size() > 1)
    return refused_levels("dapple");
  const auto [workers, bandwidth] = problem.levels.front();
  const auto chain = chain_of(problem);
  dapple_problem stated{.machines = {workers},
                        .inside = bandwidth,
                        .between = bandwidth,
                        .microbatches = minibatches(problem)};
  for (std::size_t o = 0; o < problem.operators.size(); ++o)
    stated.layers.push_back({problem.operators[o].forward,
                             problem.operators[o].backward, chain.cut_bytes[o],
                             problem.operators[o].parameter_bytes});
  const auto found = dapple(stated, options);
  const auto* const stages = plan_in<dapple_plan>(found);
  if (!stages)
    return found;
  pipedream_plan result;
  for (const auto& stage : stages->stages)
    result.stages.push_back({numbers_between(stage.first, stage.last),
                             static_cast<int>(stage.devices.size()),
                             {}});
  return answer{*found->cost / minibatches(problem), any_plan{std::move(result)}};
}

outcome alpa_on_pipedream(const pipedream_problem& problem,
                          const search_options& options) {
  if (problem.levels.size() > 1)
    return refused_levels("alpa");
  const auto [workers, bandwidth] = problem.levels.front();
  const auto layers = static_cast<int>(problem.operators.size());
  alpa_problem stated{
    .mesh = {1, workers}, .layers = layers, .microbatches = minibatches(problem)};
  for (int size = 1; size <= workers; size *= 2)
    stated.submeshes.push_back({1, size});
  for (int first = 0; first < layers; ++first) {
    double work = 0, weights = 0, kept = 0;
    for (int last = first; last < layers; ++last) {
      const auto& o = problem.operators[static_cast<std::size_t>(last)];
      work += o.forward + o.backward;
      weights += o.parameter_bytes;
      kept += o.parameter_bytes + o.output_bytes;
      // A stage keeps a version for itself and for each later stage.
      const double versions =
        problem.memory ? std::min(*problem.memory / std::max(kept, 1.0), 1e6) : 1e6;
      for (std::size_t m = 0; m < stated.submeshes.size() && versions >= 1; ++m)
        stated.costs.push_back({first, last, static_cast<int>(m), 0,
                                stage_seconds(problem.model, work, weights,
                                              stated.submeshes[m].columns, bandwidth),
                                static_cast<int>(versions) - 1});
    }
  }
  const auto found = alpa(stated, options);
  const auto* const stages = plan_in<alpa_plan>(found);
  if (!stages)
    return found;
  pipedream_plan result;
  for (const auto& stage : stages->stages)
    result.stages.push_back(
      {numbers_between(stage.first, stage.last),
       stated.submeshes[static_cast<std::size_t>(stage.submesh)].columns,
       {}});
  return answer{*found->cost / minibatches(problem), any_plan{std::move(result)}};
}

} // namespace troupe::planner
