// SPDX-License-Identifier: BSD-3-Clause
// Stages by learned times: PipeDream's search (Narayanan et al., SOSP 2019), where
// times of operators are predicted from names and sizes instead of measured. A line
// over operations and bytes for each kind of operator is the simplest of such models.
// Qi, Sparks, Talwalkar, "Paleo: A Performance Model for Deep Neural Networks", ICLR
// 2017, derive times from the same quantities.

#include "models/short_text.hpp"
#include "planner/learned_costs.hpp"
#include "planner/searches/searches.hpp"

#include <cstddef>
#include <set>
#include <string>
#include <vector>

namespace troupe::planner {

namespace {

std::string remark_on(const std::set<std::string>& unknown) {
  std::vector<std::string> names;
  for (const auto& kind : unknown)
    names.push_back("'" + kind + "'");
  return "no operator of kind " + first_three(names)
         + " was measured: the line of all kinds predicts the times";
}

} // namespace

outcome learned(const pipedream_problem& problem, const search_options& options) {
  if (options.costs.empty())
    return tl::unexpected{
      std::string{"planner learned needs a file of learned costs: learned:costs=FILE"}};
  const auto costs = learned_costs::load(options.costs);
  if (!costs)
    return tl::unexpected{costs.error()};
  std::vector<double> input_bytes(problem.operators.size());
  for (const auto& e : problem.edges)
    input_bytes[static_cast<std::size_t>(e.to)] +=
      problem.operators[static_cast<std::size_t>(e.from)].output_bytes;
  auto predicted = problem;
  std::set<std::string> unknown;
  for (std::size_t i = 0; i < input_bytes.size(); ++i) {
    auto& op = predicted.operators[i];
    const described_operator described{op.name, input_bytes[i], op.output_bytes,
                                       op.parameter_bytes};
    if (!costs->knows(described.kind()))
      unknown.insert(described.kind());
    const auto seconds = costs->predict(described);
    op.forward = seconds.forward;
    op.backward = seconds.backward;
  }
  auto result = pipedream(predicted, options);
  if (result && !unknown.empty())
    result->remark = remark_on(unknown);
  return result;
}

} // namespace troupe::planner
