// SPDX-License-Identifier: BSD-3-Clause
#include "planner/kinds/propagation.hpp"

namespace troupe::planner {

tl::expected<double, std::string> cost(const propagation_problem&,
                                       const propagation_plan& plan) {
  return static_cast<double>(plan.collectives.size());
}

} // namespace troupe::planner
