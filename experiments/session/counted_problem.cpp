// SPDX-License-Identifier: BSD-3-Clause
#include "experiments/session/counted_problem.hpp"

#include "plan/costs.hpp"

#include <string>

namespace troupe {

planner::pipedream_problem counted_problem(const network<float>& whole,
                                           std::int64_t samples,
                                           const planned_devices& devices) {
  planner::pipedream_problem result;
  result.levels = {{devices.count, devices.bandwidth}};
  result.memory = devices.memory;
  for (std::size_t i = 0; i < whole.layers.size(); ++i) {
    const auto& layer = *whole.layers[i];
    const double forward =
      layer.operations() * static_cast<double>(samples) / operations_a_nanosecond / 1e9;
    std::int64_t values = 0;
    for (const auto& parameter : layer.parameters())
      values += parameter.values();
    result.operators.push_back(
      {"layer " + std::to_string(i), forward, 2 * forward,
       static_cast<double>(sizeof(float)
                           * static_cast<std::size_t>(samples * layer.output())),
       static_cast<double>(sizeof(float) * static_cast<std::size_t>(values))});
    if (i > 0)
      result.edges.push_back({static_cast<int>(i) - 1, static_cast<int>(i)});
  }
  return result;
}

} // namespace troupe
