// SPDX-License-Identifier: BSD-3-Clause
#include "planner/kinds/placement.hpp"

#include <algorithm>

namespace troupe::planner {

double simulated_time(const placement_problem& problem,
                      const std::vector<int>& devices) {
  const auto count = problem.operators.size();
  const auto device_count = problem.memory.size();
  std::vector<std::vector<std::size_t>> consumers(count);
  for (const auto& [from, to] : problem.edges)
    consumers[static_cast<std::size_t>(from)].push_back(static_cast<std::size_t>(to));
  std::vector<double> arrival(count), device_free(device_count);
  std::vector<double> wire_free(device_count * device_count);
  double end = 0;
  for (std::size_t o = 0; o < count; ++o) {
    const auto device = static_cast<std::size_t>(devices[o]);
    const double finish =
      std::max(device_free[device], arrival[o]) + problem.operators[o].seconds[device];
    device_free[device] = finish;
    end = std::max(end, finish);
    for (std::size_t other = 0; other < device_count; ++other) {
      double received = finish;
      bool is_sent = other == device;
      for (const auto consumer : consumers[o]) {
        if (static_cast<std::size_t>(devices[consumer]) != other)
          continue;
        if (!is_sent) {
          // The output goes once to each device, when the wire is free.
          auto& wire = wire_free[device * device_count + other];
          wire = std::max(finish, wire)
                 + problem.operators[o].bytes / problem.bandwidth[device][other];
          received = wire + problem.latency[device][other];
          is_sent = true;
        }
        arrival[consumer] = std::max(arrival[consumer], received);
      }
    }
  }
  return end;
}

tl::expected<double, std::string> cost(const placement_problem& problem,
                                       const placement_plan& plan) {
  using mistake = tl::unexpected<std::string>;
  if (plan.devices.size() != problem.operators.size())
    return mistake{"an operator has no place"};
  std::vector<double> need(problem.memory.size());
  for (std::size_t o = 0; o < plan.devices.size(); ++o) {
    if (plan.devices[o] < 0 || plan.devices[o] >= problem.devices())
      return mistake{"there is no device " + std::to_string(plan.devices[o])};
    need[static_cast<std::size_t>(plan.devices[o])] += problem.operators[o].memory;
  }
  for (std::size_t d = 0; d < need.size(); ++d)
    if (need[d] > problem.memory[d])
      return mistake{"device " + std::to_string(d)
                     + " has less memory than its operators need"};
  return simulated_time(problem, plan.devices);
}

} // namespace troupe::planner
