// SPDX-License-Identifier: BSD-3-Clause
// The member `stated` of cases of kind intra.

#include "planner/kinds/readers.hpp"
#include "planner/kinds/stated.hpp"
#include "planner/split_text.hpp"

#include <cstddef>

namespace troupe::planner {

namespace {

constexpr double most_strategies = 4096; // of an operator

std::string checked(const case_value& from, const std::string& indices,
                    const stated_problem& problem) {
  for (const char index : indices)
    if (!problem.sizes.contains(index))
      from.fail("has the index '" + std::string(1, index)
                + "', but 'sizes' has no such index");
  return indices;
}

// "mk,kf->mf", or "mf" for an elementwise operator.
void read_einsum(stated_operator& to, const case_value& from,
                 const stated_problem& problem) {
  const auto text = from.text();
  const auto arrow = text.find("->");
  to.is_elementwise = arrow == std::string::npos;
  to.operands = split_text(text.substr(0, arrow), ',');
  to.output = to.is_elementwise ? text : text.substr(arrow + 2);
  for (const auto& operand : to.operands)
    checked(from, operand, problem);
  checked(from, to.output, problem);
}

stated_operator read_operator(const case_value& from, const stated_problem& problem) {
  stated_operator result;
  result.name = from.member("name").text();
  read_einsum(result, from.member("einsum"), problem);
  if (from.has("weight"))
    result.weight =
      from.member("weight").integer(0, static_cast<int>(result.operands.size()) - 1);
  if (from.has("repeats"))
    result.repeats = from.member("repeats").positive();
  if (from.has("flops"))
    result.operations = from.member("flops").number();
  const auto allowed = from.member("allowed");
  result.allowed = checked(allowed, allowed.text(), problem);
  double strategies = 1;
  for (std::size_t axis = 0; axis < problem.mesh.size(); ++axis)
    strategies *= static_cast<double>(result.allowed.size() + 1);
  if (strategies > most_strategies)
    allowed.fail("gives an operator more than 4,096 strategies");
  return result;
}

} // namespace

stated_problem read_stated(const case_value& from) {
  stated_problem result;
  const auto axes = from.member("mesh").elements();
  if (axes.empty())
    from.member("mesh").fail("is empty, but an axis or more are needed");
  const auto bandwidth = from.member("bandwidth").elements(axes.size());
  for (std::size_t axis = 0; axis < axes.size(); ++axis)
    result.mesh.push_back(
      {axes[axis].integer(1, most_operators), bandwidth[axis].positive()});
  result.operations_per_second = from.member("flops").positive();
  for (const auto& [name, size] : from.member("sizes").members()) {
    if (name.size() != 1 || name[0] == unsplit || name[0] == '|')
      size.fail("has the name '" + name + "', but an index is one letter");
    result.sizes[name[0]] = size.integer(1, 1 << 30);
  }
  result.bytes_an_element = from.member("bytes_an_element").positive();
  result.bytes_a_parameter = from.member("bytes_a_parameter").positive();
  for (const auto& element : from.member("operators").elements())
    result.operators.push_back(read_operator(element, result));
  const auto count = static_cast<int>(result.operators.size());
  if (count == 0)
    from.member("operators").fail("is empty, but an operator or more are needed");
  for (const auto& element : from.member("edges").elements()) {
    const auto parts = element.elements(3);
    auto& edge = result.edges.emplace_back();
    edge.from = parts[0].integer(0, count - 1);
    edge.to = parts[1].integer(0, count - 1);
    const auto letters = checked(parts[2], parts[2].text(), result);
    if (letters.size() % 2 != 0)
      parts[2].fail("has an odd number of letters, but renames in pairs");
    for (std::size_t i = 0; i < letters.size(); i += 2)
      edge.renamed[letters[i]] = letters[i + 1];
  }
  return result;
}

} // namespace troupe::planner
