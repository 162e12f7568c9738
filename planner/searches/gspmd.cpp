// SPDX-License-Identifier: BSD-3-Clause
// Propagation of layouts from a few annotations, and the collectives that the layouts
// need. Xu et al., "GSPMD: General and Scalable Parallelization for ML Computation
// Graphs", 2021, sections 3.5 and 4. The rules are in plan/propagation.hpp.

#include "plan/propagation.hpp"
#include "planner/searches/searches.hpp"

namespace troupe::planner {

outcome gspmd(const propagation_problem& problem, const search_options&) {
  propagation_plan plan{propagated(problem.operators, problem.annotated), {}};
  plan.collectives = needed_collectives(problem.operators, plan.shardings);
  return judged(problem, std::move(plan));
}

} // namespace troupe::planner
