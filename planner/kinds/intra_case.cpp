// SPDX-License-Identifier: BSD-3-Clause
// Cases {nodes: [{name, strategies, cost, memory}], edges: [{from, to, cost: [[]]}],
// memory, stated: {mesh, ..}}. Without nodes, strategies follow from `stated`.

#include "planner/kinds/readers.hpp"
#include "planner/kinds/stated.hpp"

namespace troupe::planner {

intra_problem read_intra(const case_value& from) {
  if (!from.has("nodes") && from.has("stated")) {
    (void)from.has("edges"); // those of strategies follow too
    auto stated = read_stated(from.member("stated"));
    if (from.has("memory"))
      stated.memory = from.member("memory").number();
    return strategies_of(stated);
  }
  intra_problem result;
  for (const auto& element : from.member("nodes").elements()) {
    auto& added = result.nodes.emplace_back();
    if (element.has("name"))
      added.name = element.member("name").text();
    added.cost = element.member("cost").numbers();
    if (added.cost.empty())
      element.member("cost").fail("is empty, but a strategy or more are needed");
    for (const auto& strategy :
         element.member("strategies").elements(added.cost.size()))
      added.strategies.push_back(strategy.text());
    for (const auto& value : element.member("memory").elements(added.cost.size()))
      added.memory.push_back(value.number());
  }
  const auto count = static_cast<int>(result.nodes.size());
  if (count == 0)
    from.member("nodes").fail("is empty, but an operator or more are needed");
  for (const auto& element : from.member("edges").elements()) {
    auto& added = result.edges.emplace_back();
    added.from = element.member("from").integer(0, count - 1);
    added.to = element.member("to").integer(0, count - 1);
    const auto rows = result.nodes[static_cast<std::size_t>(added.from)].cost.size();
    const auto columns = result.nodes[static_cast<std::size_t>(added.to)].cost.size();
    for (const auto& row : element.member("cost").elements(rows)) {
      row.elements(columns);
      added.cost.push_back(row.numbers());
    }
  }
  if (from.has("memory"))
    result.memory = from.member("memory").number();
  if (from.has("stated"))
    result.mesh_axes =
      static_cast<int>(from.member("stated").member("mesh").elements().size());
  return result;
}

void write(nlohmann::ordered_json& to, const intra_plan& plan) {
  to["plan"] = plan.strategies;
}

} // namespace troupe::planner
