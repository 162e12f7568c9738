// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Exact search for strategies by dynamic programming over operators in their order.

#include "planner/kinds/intra.hpp"

#include <optional>

namespace troupe::planner {

/// The plan of least cost; of several the one whose first operators have the first
/// strategies. Costs within 1e-12 of each other are equal. Absent: nothing fits.
/// The number of states is exponential in the number of operators that edges keep open
/// at once.
std::optional<intra_plan> least_strategies(const intra_problem& problem);

} // namespace troupe::planner
