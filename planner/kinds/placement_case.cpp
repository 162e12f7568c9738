// SPDX-License-Identifier: BSD-3-Clause
// Cases {operators: [{seconds: [by device], bytes, memory}], edges, memory: [by
// device], bandwidth, latency: [[by device and device]]}.

#include "planner/kinds/readers.hpp"

namespace troupe::planner {

namespace {

constexpr int most_devices_of_a_case = 1024;

/// A matrix from device to device. The diagonal is never read.
std::vector<std::vector<double>> read_matrix(const case_value& from,
                                             std::size_t devices, bool is_divisor) {
  std::vector<std::vector<double>> result;
  for (const auto& row : from.elements(devices)) {
    auto& added = result.emplace_back();
    for (const auto& value : row.elements(devices)) {
      const bool is_diagonal = added.size() == result.size() - 1;
      added.push_back(is_divisor && !is_diagonal ? value.positive() : value.number());
    }
  }
  return result;
}

} // namespace

placement_problem read_placement(const case_value& from) {
  placement_problem result;
  result.memory = from.member("memory").numbers();
  const auto devices = result.memory.size();
  if (devices == 0 || devices > most_devices_of_a_case)
    from.member("memory").fail("needs 1 to 1024 devices");
  for (const auto& element : from.member("operators").elements()) {
    auto& added = result.operators.emplace_back();
    for (const auto& value : element.member("seconds").elements(devices))
      added.seconds.push_back(value.number());
    added.bytes = element.member("bytes").number();
    added.memory = element.member("memory").number();
  }
  if (result.operators.empty())
    from.member("operators").fail("is empty, but an operator or more are needed");
  result.edges =
    read_edges(from.member("edges"), static_cast<int>(result.operators.size()));
  result.bandwidth = read_matrix(from.member("bandwidth"), devices, true);
  result.latency = read_matrix(from.member("latency"), devices, false);
  return result;
}

void write(nlohmann::ordered_json& to, const placement_plan& plan) {
  to["plan"] = plan.devices;
}

} // namespace troupe::planner
