// SPDX-License-Identifier: BSD-3-Clause
// DAPPLE's estimate of a batch: warm-up, steady phase and end around a pivot stage.
// Fan et al., "DAPPLE: A Pipelined Data Parallel Approach for Training Large Models",
// PPoPP 2021, equations 1 to 3.

#include "planner/searches/searches.hpp"

namespace troupe::planner {

outcome latency_of_dapple(const dapple_latency_problem& stages, const search_options&) {
  const auto terms = latency(stages);
  return answer{terms.sum(), any_plan{terms}};
}

} // namespace troupe::planner
