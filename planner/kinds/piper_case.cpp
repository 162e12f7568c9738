// SPDX-License-Identifier: BSD-3-Clause
// Cases {devices, microbatches, bandwidth, memory, graph: {operators: [{name, options:
// [{tensor, name, seconds, weights, a, b, edge: {number: bytes}}]}], edges: [[from, to,
// bytes]]}}.

#include "planner/kinds/readers.hpp"

#include <charconv>

namespace troupe::planner {

namespace {

constexpr int most_microbatches = 1'000'000'000;

piper_option read_option(const case_value& from, int edges) {
  piper_option result;
  result.tensor = from.member("tensor").integer(1, most_operators);
  result.name = from.member("name").text();
  result.seconds = from.member("seconds").number();
  result.weights = from.member("weights").number();
  result.in_flight_bytes = from.member("a").number();
  result.fixed_bytes = from.member("b").number();
  for (const auto& [name, bytes] : from.member("edge").members()) {
    int number = -1;
    const auto [end, failed] =
      std::from_chars(name.data(), name.data() + name.size(), number);
    if (failed != std::errc{} || end != name.data() + name.size() || number < 0
        || number >= edges)
      bytes.fail("is no number of an edge: edges are 0 to "
                 + std::to_string(edges - 1));
    result.edge_bytes[number] = bytes.number();
  }
  return result;
}

} // namespace

piper_problem read_piper(const case_value& from) {
  piper_problem result;
  result.devices = from.member("devices").integer(1, 4096);
  result.microbatches = from.member("microbatches").integer(1, most_microbatches);
  result.bandwidth = from.member("bandwidth").positive();
  result.memory = from.member("memory").number();
  const auto graph = from.member("graph");
  const auto operators = graph.member("operators").elements();
  const auto count = static_cast<int>(operators.size());
  if (count == 0)
    graph.fail("has no operators, but an operator or more are needed");
  for (const auto& element : graph.member("edges").elements()) {
    const auto values = element.elements(3);
    const edge ends{values[0].integer(0, count - 1), values[1].integer(0, count - 1)};
    if (ends.from >= ends.to)
      element.fail("leads back: operators need a topological order");
    result.edges.push_back({ends, values[2].number()});
  }
  for (const auto& element : operators) {
    auto& added = result.operators.emplace_back();
    if (element.has("name"))
      added.name = element.member("name").text();
    for (const auto& option : element.member("options").elements()) {
      const auto read = read_option(option, static_cast<int>(result.edges.size()));
      for (const auto& earlier : added.options)
        if (earlier.tensor == read.tensor && earlier.name == read.name)
          option.fail("repeats the degree and the name of an earlier option");
      added.options.push_back(read);
    }
  }
  return result;
}

void write(nlohmann::ordered_json& to, const piper_plan& plan) {
  auto stages = nlohmann::ordered_json::array();
  for (const auto& stage : plan.stages)
    stages.push_back({{"operators", stage.operators},
                      {"tensor", stage.tensor},
                      {"replicas", stage.replicas},
                      {"options", stage.options}});
  to["plan"] = std::move(stages);
}

} // namespace troupe::planner
