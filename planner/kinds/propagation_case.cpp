// SPDX-License-Identifier: BSD-3-Clause
// Cases {mesh: {axis: devices}, operators: [{einsum, inputs, output, reshard}],
// annotated: {tensor: [axis or null]}}.

#include "planner/kinds/readers.hpp"
#include "planner/split_text.hpp"

#include <algorithm>
#include <cstddef>

namespace troupe::planner {

namespace {

using ranks = std::map<std::string, std::size_t>; // dimensions of each tensor

void check_rank(ranks& known, const case_value& from, const std::string& tensor,
                std::size_t rank) {
  const auto found = known.try_emplace(tensor, rank).first;
  if (found->second != rank)
    from.fail("gives tensor '" + tensor + "' " + std::to_string(rank)
              + " dimensions, but elsewhere it has " + std::to_string(found->second));
}

einsum_operator read_operator(const case_value& from, ranks& known) {
  einsum_operator result;
  const auto einsum = from.member("einsum");
  const auto text = einsum.text();
  const auto arrow = text.find("->");
  if (arrow == std::string::npos)
    einsum.fail("is '" + text
                + "', but indices of inputs and output are needed, as "
                  "in 'mk,kn->mn'");
  result.letters = split_text(text.substr(0, arrow), ',');
  result.output_letters = text.substr(arrow + 2);
  for (const auto& input : from.member("inputs").elements(result.letters.size())) {
    check_rank(known, input, input.text(), result.letters[result.inputs.size()].size());
    result.inputs.push_back(input.text());
  }
  const auto output = from.member("output");
  result.output = output.text();
  check_rank(known, output, result.output, result.output_letters.size());
  result.reshard = from.has("reshard") && from.member("reshard").flag();
  return result;
}

tensor_layout read_layout(const case_value& from, const propagation_problem& problem) {
  tensor_layout result;
  for (const auto& dim : from.elements()) {
    if (dim.is_null()) {
      result.emplace_back();
      continue;
    }
    const auto axis = dim.text();
    if (!problem.mesh.contains(axis))
      dim.fail("is '" + axis + "', but 'mesh' has no such axis");
    if (std::ranges::find(result, axis) != result.end())
      dim.fail("is '" + axis + "', which splits another dimension of the tensor");
    result.emplace_back(axis);
  }
  return result;
}

nlohmann::ordered_json to_json(const tensor_layout& layout) {
  auto result = nlohmann::ordered_json::array();
  for (const auto& axis : layout)
    result.push_back(axis ? nlohmann::ordered_json(*axis) : nullptr);
  return result;
}

} // namespace

propagation_problem read_propagation(const case_value& from) {
  propagation_problem result;
  for (const auto& [axis, devices] : from.member("mesh").members())
    result.mesh[axis] = devices.integer(1, most_operators);
  ranks known;
  for (const auto& element : from.member("operators").elements())
    result.operators.push_back(read_operator(element, known));
  for (const auto& [tensor, layout] : from.member("annotated").members()) {
    if (!known.contains(tensor))
      layout.fail("annotates '" + tensor + "', but no operator has such a tensor");
    result.annotated[tensor] = read_layout(layout, result);
    check_rank(known, layout, tensor, result.annotated[tensor].size());
  }
  return result;
}

void write(nlohmann::ordered_json& to, const propagation_plan& plan) {
  auto& shardings = to["shardings"] = nlohmann::ordered_json::object();
  for (const auto& [tensor, layout] : plan.shardings)
    shardings[tensor] = to_json(layout);
  auto& collectives = to["collectives"] = nlohmann::ordered_json::array();
  for (const auto& needed : plan.collectives)
    collectives.push_back({needed.name, needed.operation, needed.axis, needed.tensor});
}

} // namespace troupe::planner
