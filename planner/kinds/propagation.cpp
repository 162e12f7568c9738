// SPDX-License-Identifier: BSD-3-Clause
#include "planner/kinds/propagation.hpp"

#include <algorithm>
#include <cstddef>

namespace troupe::planner {

namespace {

// A sentence about the layout of a tensor, or an empty text.
std::string layout_error(const propagation_problem& problem,
                         const tensor_layouts& layouts, const std::string& tensor,
                         std::size_t rank) {
  const auto found = layouts.find(tensor);
  if (found == layouts.end() || found->second.size() != rank)
    return "tensor '" + tensor + "' has no layout of " + std::to_string(rank)
           + " dimensions";
  const auto given = problem.annotated.find(tensor);
  if (given != problem.annotated.end() && given->second != found->second)
    return "tensor '" + tensor + "' has another layout than its annotation";
  return {};
}

} // namespace

tl::expected<double, std::string> cost(const propagation_problem& problem,
                                       const propagation_plan& plan) {
  for (const auto& op : problem.operators) {
    auto mistake =
      layout_error(problem, plan.shardings, op.output, op.output_letters.size());
    for (std::size_t i = 0; i < op.inputs.size() && mistake.empty(); ++i)
      mistake =
        layout_error(problem, plan.shardings, op.inputs[i], op.letters[i].size());
    if (!mistake.empty())
      return tl::unexpected{mistake};
  }
  auto needed = needed_collectives(problem.operators, plan.shardings);
  auto stated = plan.collectives;
  std::ranges::sort(needed);
  std::ranges::sort(stated);
  if (needed != stated)
    return tl::unexpected{
      std::string{"the collectives are others than the layouts need"}};
  return static_cast<double>(plan.collectives.size());
}

} // namespace troupe::planner
