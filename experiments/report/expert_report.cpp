// SPDX-License-Identifier: BSD-3-Clause
#include "experiments/report/expert_report.hpp"

#include "plan/run_plan.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>
#include <numeric>
#include <vector>

namespace troupe {

using json = nlohmann::ordered_json;

json experts_json(const run_plan& plan, const expert_loads& loads) {
  if (loads.by_layer.empty())
    return nullptr;
  auto result = json::array();
  for (const auto& [layer, steps] : loads.by_layer) {
    auto rows = json::array(), dropped = json::array();
    for (const auto& step : steps) {
      rows.push_back(step.rows);
      dropped.push_back(step.dropped);
    }
    const auto& name = plan.work->whole.layers[layer]->parameters().front().name;
    result.push_back({{"block", name.substr(0, name.find(".ln"))},
                      {"steps", loads.every},
                      {"loads", std::move(rows)},
                      {"dropped", std::move(dropped)}});
  }
  return result;
}

std::string summary_of(const expert_loads& loads) {
  double worst = 0, dropped = 0, choices = 0;
  for (const auto& [layer, steps] : loads.by_layer) {
    std::vector<double> rows(steps.back().rows.size());
    for (auto s = steps.size() - (steps.size() + 9) / 10; s < steps.size(); ++s) {
      for (std::size_t e = 0; e < rows.size(); ++e)
        rows[e] += static_cast<double>(steps[s].rows[e]);
      dropped += static_cast<double>(steps[s].dropped);
    }
    const double sum = std::accumulate(rows.begin(), rows.end(), 0.0);
    const double mean = sum / static_cast<double>(rows.size());
    worst = std::max(worst, mean > 0 ? std::ranges::max(rows) / mean : 0);
    choices += sum;
  }
  choices += dropped;
  char text[64];
  std::snprintf(text, sizeof text, "%.2f, %.1f%%", worst,
                choices > 0 ? 100 * dropped / choices : 0);
  return text;
}

} // namespace troupe
