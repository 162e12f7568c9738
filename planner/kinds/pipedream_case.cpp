// SPDX-License-Identifier: BSD-3-Clause
// Cases {model, levels: [[workers, bandwidth]], memory, straight, graph: {operators:
// [[name, forward, backward, output bytes, parameter bytes]], edges}}.

#include "planner/kinds/readers.hpp"

namespace troupe::planner {

namespace {

constexpr int most_workers = 4096;

pipedream_model read_model(const case_value& from) {
  const auto name = from.text();
  if (name == "paper")
    return pipedream_model::paper;
  if (name == "released")
    return pipedream_model::released;
  from.fail("is '" + name + "', but a model is paper or released");
}

nlohmann::ordered_json to_json(const std::vector<pipedream_stage>& stages) {
  auto result = nlohmann::ordered_json::array();
  for (const auto& stage : stages) {
    nlohmann::ordered_json written{{"operators", stage.operators},
                                   {"replicas", stage.replicas}};
    if (!stage.inner.empty())
      written["inner"] = to_json(stage.inner);
    result.push_back(std::move(written));
  }
  return result;
}

} // namespace

pipedream_problem read_pipedream(const case_value& from) {
  pipedream_problem result;
  result.model = read_model(from.member("model"));
  const auto levels = from.member("levels");
  for (const auto& level : levels.elements()) {
    const auto values = level.elements(2);
    result.levels.push_back({values[0].integer(1, most_workers), values[1].positive()});
  }
  if (result.levels.empty())
    levels.fail("is empty, but a level or more are needed");
  if (result.levels.size() > 1 && result.model != pipedream_model::paper)
    levels.fail("has several levels, which only the model paper has");
  if (from.has("memory"))
    result.memory = from.member("memory").number();
  if (from.has("straight"))
    result.straight = from.member("straight").flag();
  const auto graph = from.member("graph");
  for (const auto& element : graph.member("operators").elements()) {
    const auto values = element.elements(5);
    result.operators.push_back({values[0].text(), values[1].number(),
                                values[2].number(), values[3].number(),
                                values[4].number()});
  }
  if (result.operators.empty())
    graph.fail("has no operators, but an operator or more are needed");
  result.edges =
    read_edges(graph.member("edges"), static_cast<int>(result.operators.size()));
  return result;
}

void write(nlohmann::ordered_json& to, const pipedream_plan& plan) {
  to["plan"] = to_json(plan.stages);
}

} // namespace troupe::planner
