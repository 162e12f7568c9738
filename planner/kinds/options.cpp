// SPDX-License-Identifier: BSD-3-Clause
#include "planner/kinds/options.hpp"

#include <algorithm>

namespace troupe::planner {

tl::expected<double, std::string> cost(const options_problem& problem,
                                       const options_plan& plan) {
  const auto row = std::ranges::find(problem.rows, plan.values, &options_row::values);
  if (row == problem.rows.end())
    return tl::unexpected{std::string{"no row has these options"}};
  if (!row->seconds)
    return tl::unexpected{std::string{"these options are refused"}};
  return *row->seconds;
}

} // namespace troupe::planner
