// SPDX-License-Identifier: BSD-3-Clause
// Cases {mesh: [rows, columns], layers, microbatches, submeshes: [[rows, columns]],
// costs: [[first layer, last layer, submesh, config, seconds, most later stages]]}.

#include "planner/kinds/readers.hpp"

#include <set>
#include <tuple>

namespace troupe::planner {

namespace {

constexpr int most_devices_a_side = 4096;

mesh_shape read_mesh(const case_value& from) {
  const auto sides = from.elements(2);
  return {sides[0].integer(1, most_devices_a_side),
          sides[1].integer(1, most_devices_a_side)};
}

} // namespace

alpa_problem read_alpa(const case_value& from) {
  alpa_problem result;
  result.mesh = read_mesh(from.member("mesh"));
  result.layers = from.member("layers").integer(1, most_operators);
  result.microbatches = from.member("microbatches").integer(1, 1'000'000'000);
  for (const auto& element : from.member("submeshes").elements())
    result.submeshes.push_back(read_mesh(element));
  const auto submeshes = static_cast<int>(result.submeshes.size());
  std::set<std::tuple<int, int, int, int>> seen;
  for (const auto& element : from.member("costs").elements()) {
    const auto values = element.elements(6);
    alpa_cost row;
    row.first = values[0].integer(0, result.layers - 1);
    row.last = values[1].integer(row.first, result.layers - 1);
    row.submesh = values[2].integer(0, submeshes - 1);
    row.config = values[3].integer(0, 1'000'000'000);
    row.seconds = values[4].number();
    row.most_later = values[5].integer(0, 1'000'000'000);
    if (!seen.emplace(row.first, row.last, row.submesh, row.config).second)
      element.fail("repeats the layers, submesh and config of an earlier row");
    result.costs.push_back(row);
  }
  return result;
}

void write(nlohmann::ordered_json& to, const alpa_plan& plan) {
  auto stages = nlohmann::ordered_json::array();
  for (const auto& stage : plan.stages)
    stages.push_back({{"first", stage.first},
                      {"last", stage.last},
                      {"submesh", stage.submesh},
                      {"config", stage.config}});
  to["plan"] = std::move(stages);
}

} // namespace troupe::planner
