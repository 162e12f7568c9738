// SPDX-License-Identifier: BSD-3-Clause
#include "experiments/session/measured_options.hpp"

#include "experiments/options/setup.hpp"
#include "models/measured_costs.hpp"
#include "schedules/catalog/catalog.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <iostream>

namespace troupe {

namespace {

/// Measures the network as one stage on one rank.
tl::expected<std::vector<measured_unit>, std::string> measure(const options& o) {
  auto alone = o;
  alone.mesh = {.stages = 1};
  alone.checkpoint = {};
  alone.schedules.uneven = {};
  alone.schedules.chosen = {{.text = "naive",
                             .of_all = false,
                             .name = "naive",
                             .values = {},
                             .sch = naive(),
                             .optimizer = o.optimizer}};
  const auto shared = set_up(alone);
  if (!shared)
    return tl::unexpected{shared.error()};
  const auto& plan = shared->runs.front().plan;
  return measured_costs(plan.work->whole, *plan.work->data, plan.work->weights,
                        plan.batches().samples_of(0));
}

/// As many digits as the noise of a measurement leaves, so that the printed costs are
/// exactly the costs that are used.
std::string split_of(const std::vector<measured_unit>& units) {
  const auto least =
    std::ranges::min_element(units, {}, &measured_unit::total)->total();
  std::string result;
  for (const auto& unit : units) {
    char digits[32];
    std::snprintf(digits, sizeof digits, "%.3g", unit.total() / least);
    result += (result.empty() ? "costs=" : "/") + std::string{digits};
  }
  return result;
}

/// The schedule with the times of F, I and W of the whole network, in hundredths of the
/// shortest one.
std::string schedule_of(const chosen_schedule& chosen,
                        const std::vector<measured_unit>& units) {
  measured_unit sum{0, 0, 0};
  for (const auto& [forward, input_gradient, weight_gradient] : units) {
    sum.forward += forward;
    sum.input_gradient += input_gradient;
    sum.weight_gradient += weight_gradient;
  }
  const auto least = std::min({sum.forward, sum.input_gradient, sum.weight_gradient});
  auto values = chosen.values;
  values.erase("measured");
  for (const auto& [key, seconds] : {std::pair{"f", sum.forward},
                                     {"i", sum.input_gradient},
                                     {"w", sum.weight_gradient}})
    values[key] =
      std::to_string(std::clamp(std::lround(100 * seconds / least), 1L, 1'000'000L));
  std::string result;
  for (const auto& [key, value] : values)
    result += (result.empty() ? chosen.name + ":" : ",") + key + "=" + value;
  return result;
}

} // namespace

std::string measure_options(options& o) {
  const bool asks_schedule = std::ranges::any_of(o.schedules.chosen, measures_times);
  if (!o.mesh.measures_units && !asks_schedule)
    return {};
  const auto* const option = asks_schedule ? "zb-auto:measured=on" : "--split measured";
  if (!o.trains)
    return std::string{option} + " measures a network, and a simulation has none: "
           + "leave " + option + " out, and give times by --cost";
  if (std::ranges::any_of(o.run.processors, &processor::is_gpu))
    return std::string{option}
           + " measures only the CPU, and a rank uses a GPU: give the GPU's times, for "
             "example "
           + (asks_schedule ? "--schedule zb-auto:f=100,i=110,w=90"
                            : "--split costs=1/1/1/2");
  const auto units = measure(o);
  if (!units)
    return units.error();
  const auto print_value = [&](const std::string& setting) {
    if (!o.output.quiet)
      std::cerr << o.output.command.front() << ": measured " << setting << '\n';
  };
  if (o.mesh.measures_units) {
    const auto text = split_of(*units);
    print_value("--split " + text);
    // Parsed from the printed text: further digits would give another split.
    o.mesh.unit_costs = parse({.split = text})->unit_costs;
    o.mesh.measures_units = false;
  }
  for (auto& chosen : o.schedules.chosen) {
    if (!measures_times(chosen))
      continue;
    const auto text = schedule_of(chosen, *units);
    print_value("--schedule " + text);
    chosen = parse_schedule(text, chosen.of_all, &o.optimizer).value();
  }
  return {};
}

} // namespace troupe
