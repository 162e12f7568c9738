#include "experiments/session/measured_split.hpp"

#include "experiments/options/setup.hpp"
#include "models/measured_costs.hpp"
#include "schedules/catalog/catalog.hpp"

#include <algorithm>
#include <cstdio>
#include <iostream>

namespace troupe {

namespace {

/// As many digits as the noise of a measurement leaves: what is typed again is what was
/// used.
std::string to_text(const std::vector<double>& costs) {
  std::string result;
  for (const double c : costs) {
    char one[32];
    std::snprintf(one, sizeof one, "%.3g", c);
    result += (result.empty() ? "costs=" : "/") + std::string{one};
  }
  return result;
}

} // namespace

std::string measure_split(options& o) {
  if (!o.mesh.measures_units)
    return {};
  if (std::ranges::any_of(o.run.processors, &processor::is_gpu))
    return "--split measured measures the CPU, not a GPU: say costs=.. of what yours "
           "takes, or how many blocks each stage has";
  // The network as one stage, on one rank.
  auto alone = o;
  alone.mesh = {.stages = 1};
  alone.checkpoint = {};
  alone.schedules.chosen = {{.text = "naive",
                             .of_all = false,
                             .name = "naive",
                             .values = {},
                             .sch = naive(),
                             .optimizer = o.optimizer}};
  const auto shared = set_up(alone);
  if (!shared)
    return shared.error();
  const auto& plan = shared->runs.front().plan;
  auto costs = measured_costs(plan.work->whole, *plan.work->data, plan.work->weights,
                              plan.batches().samples_of(0));
  const double least = std::ranges::min(costs);
  for (auto& c : costs)
    c /= least;
  const auto text = to_text(costs);
  if (!o.output.quiet)
    std::cerr << o.output.command.front() << ": measured: --split " << text << '\n';
  // As typed: digits that are not told would make another split.
  auto read = parse({.split = text});
  o.mesh.unit_costs = std::move(read->unit_costs);
  o.mesh.measures_units = false;
  return {};
}

} // namespace troupe
