// SPDX-License-Identifier: BSD-3-Clause
#include "planner/kinds/dapple.hpp"

#include <algorithm>
#include <numeric>
#include <set>

namespace troupe::planner {

namespace {

using mistake = tl::unexpected<std::string>;

/// Sum of values[first] to values[last]; 0 if there are none.
double sum(const std::vector<double>& values, int first, int last) {
  double result = 0;
  for (int s = first; s <= last; ++s)
    result += values[static_cast<std::size_t>(s)];
  return result;
}

} // namespace

dapple_latency latency(const dapple_latency_problem& stages) {
  const auto last = static_cast<int>(stages.forward.size()) - 1;
  const auto steady = [&](int s) {
    return (stages.microbatches - 1)
           * (stages.forward[static_cast<std::size_t>(s)]
              + stages.backward[static_cast<std::size_t>(s)]);
  };
  dapple_latency result{.pivot = last};
  for (int s = last - 1; s >= 0; --s) {
    double between = 0;
    for (int a = s + 1; a < result.pivot; ++a)
      between += stages.forward[static_cast<std::size_t>(a)]
                 + stages.backward[static_cast<std::size_t>(a)];
    if (steady(s) > steady(result.pivot) + between)
      result.pivot = s;
  }
  result.warm_up = sum(stages.forward, 0, result.pivot);
  result.steady = steady(result.pivot);
  for (int s = 0; s <= last; ++s) {
    const double exchange = stages.exchange[static_cast<std::size_t>(s)];
    const double end = s <= result.pivot
                         ? exchange + sum(stages.backward, s, result.pivot)
                         : exchange - sum(stages.backward, result.pivot + 1, s - 1);
    result.end = s == 0 ? end : std::max(result.end, end);
  }
  return result;
}

int dapple_problem::devices() const {
  return std::accumulate(machines.begin(), machines.end(), 0);
}

tl::expected<double, std::string> cost(const dapple_problem& problem,
                                       const dapple_plan& plan) {
  std::vector<int> machine_of;
  for (std::size_t m = 0; m < problem.machines.size(); ++m)
    machine_of.insert(machine_of.end(), static_cast<std::size_t>(problem.machines[m]),
                      static_cast<int>(m));
  const auto bandwidth = [&](const std::set<int>& homes) {
    return homes.size() == 1 ? problem.inside : problem.between;
  };
  dapple_latency_problem stages{.microbatches = problem.microbatches};
  std::vector<std::set<int>> homes;
  std::set<int> used;
  int next = 0;
  for (const auto& stage : plan.stages) {
    if (stage.first != next || stage.last < stage.first
        || stage.last >= static_cast<int>(problem.layers.size()))
      return mistake{"layer " + std::to_string(next) + " has no place"};
    next = stage.last + 1;
    homes.emplace_back();
    for (const int d : stage.devices) {
      if (d < 0 || d >= problem.devices())
        return mistake{"there is no device " + std::to_string(d)};
      if (!used.insert(d).second)
        return mistake{"device " + std::to_string(d) + " has two places"};
      homes.back().insert(machine_of[static_cast<std::size_t>(d)]);
    }
    if (stage.devices.empty())
      return mistake{"a stage has no device"};
  }
  if (next != static_cast<int>(problem.layers.size()))
    return mistake{"layer " + std::to_string(next) + " has no place"};
  if (static_cast<int>(used.size()) != problem.devices())
    return mistake{"not all devices are used"};
  for (std::size_t s = 0; s < plan.stages.size(); ++s) {
    const auto& stage = plan.stages[s];
    const auto replicas = static_cast<double>(stage.devices.size());
    double forward = 0, backward = 0, weights = 0;
    for (int l = stage.first; l <= stage.last; ++l) {
      const auto& layer = problem.layers[static_cast<std::size_t>(l)];
      forward += layer.forward;
      backward += layer.backward;
      weights += layer.parameter_bytes;
    }
    stages.forward.push_back(forward / replicas);
    stages.backward.push_back(backward / replicas);
    stages.exchange.push_back(2 * (replicas - 1) / replicas * weights
                              / bandwidth(homes[s]));
    if (s + 1 == plan.stages.size())
      break;
    auto both = homes[s];
    both.insert(homes[s + 1].begin(), homes[s + 1].end());
    const double seconds =
      problem.layers[static_cast<std::size_t>(stage.last)].output_bytes
      / bandwidth(both);
    stages.forward.push_back(seconds);
    stages.backward.push_back(seconds);
    stages.exchange.push_back(0);
  }
  return latency(stages).sum();
}

tl::expected<double, std::string> cost(const dapple_latency_problem& problem,
                                       const dapple_latency& plan) {
  (void)plan; // the terms follow from the problem
  return latency(problem).sum();
}

} // namespace troupe::planner
