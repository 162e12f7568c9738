// SPDX-License-Identifier: BSD-3-Clause
// Cases {split, accelerators, cpus, memory, graph: {operators: [{name, accelerator,
// cpu, size, transfer, accelerator_can, backward, colour}], edges}}.

#include "planner/kinds/readers.hpp"

#include <limits>

namespace troupe::planner {

namespace {

constexpr int most_devices = 4096;

tarnawski_split read_split(const case_value& from) {
  const auto name = from.text();
  if (name == "pipeline")
    return tarnawski_split::pipeline;
  if (name == "contiguous")
    return tarnawski_split::contiguous;
  if (name == "any")
    return tarnawski_split::any;
  from.fail("is '" + name + "', but a split is pipeline, contiguous or any");
}

tarnawski_operator read_operator(const case_value& from) {
  tarnawski_operator result;
  if (from.has("name"))
    result.name = from.member("name").text();
  result.accelerator = from.member("accelerator").number();
  result.cpu = from.member("cpu").number();
  result.size = from.member("size").number();
  result.transfer = from.member("transfer").number();
  result.accelerator_can = from.member("accelerator_can").flag();
  result.backward = from.member("backward").flag();
  if (from.has("colour"))
    result.colour = from.member("colour").integer(std::numeric_limits<int>::min(),
                                                  std::numeric_limits<int>::max());
  return result;
}

} // namespace

tarnawski_problem read_tarnawski(const case_value& from) {
  tarnawski_problem result;
  result.split = read_split(from.member("split"));
  result.accelerators = from.member("accelerators").integer(0, most_devices);
  result.cpus = from.member("cpus").integer(0, most_devices);
  if (result.accelerators + result.cpus == 0)
    from.fail("has no device: give 'accelerators' or 'cpus' above 0");
  result.memory = from.member("memory").number();
  const auto graph = from.member("graph");
  for (const auto& element : graph.member("operators").elements())
    result.operators.push_back(read_operator(element));
  if (result.operators.empty())
    graph.fail("has no operators, but an operator or more are needed");
  result.edges =
    read_edges(graph.member("edges"), static_cast<int>(result.operators.size()));
  return result;
}

void write(nlohmann::ordered_json& to, const tarnawski_plan& plan) {
  auto parts = nlohmann::ordered_json::array();
  for (const auto& part : plan.parts)
    parts.push_back(
      {{"device", part.on_cpu ? "cpu" : "accelerator"}, {"operators", part.operators}});
  to["plan"] = std::move(parts);
}

} // namespace troupe::planner
