// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// A choice for each operator, with a cost of all choices together: the common form of
// placements and strategies for searches that only evaluate.

#include "planner/problem.hpp"

#include <functional>
#include <vector>

namespace troupe::planner {

using assignment = std::vector<int>;

/// Functions refer to the problem, which must outlive them.
struct assignment_space {
  std::vector<int> choices; ///< Number of choices of each operator, above 0.
  std::function<double(const assignment&)> cost; ///< Memory is not checked.
  /// Memory above the limits, as a part of the limits; 0: the assignment fits.
  std::function<double(const assignment&)> excess;
};

/// The devices of operators.
assignment_space space_of(const placement_problem& problem);

/// The strategies of operators.
assignment_space space_of(const intra_problem& problem);

} // namespace troupe::planner
