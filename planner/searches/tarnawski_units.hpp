// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Operators of Tarnawski's problem that share a device in every plan of a pipeline.

#include "planner/kinds/tarnawski.hpp"

#include <vector>

namespace troupe::planner {

/// Sets of operators in a topological order, and the edges that a pipeline keeps.
struct tarnawski_units {
  std::vector<std::vector<int>> operators; ///< Of each unit, in increasing order.
  std::vector<edge> edges;                 ///< Between units.
  /// Operators that cost nothing in any part, in a topological order; in no unit.
  std::vector<int> free;
};

/// Joins operators of a colour, then sets that lead to each other. Backward operators
/// without a forward operator of their colour are units with their edges turned round.
tarnawski_units units_of(const tarnawski_problem& problem);

/// Fewer units with the same least load. Operators without time, size and transfers
/// become free. Operators without time and readers join the operator that they read,
/// unless memory may bound a plan.
tarnawski_units simplified(const tarnawski_problem& problem, tarnawski_units units);

/// Adds free operators to the parts of a pipeline: each to the last part that it reads,
/// or to the first part.
void place_free(const tarnawski_problem& problem, const std::vector<int>& free,
                tarnawski_plan& plan);

} // namespace troupe::planner
