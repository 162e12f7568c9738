// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Enumerations of plans for the planner `exhaustive`.

#include "planner/kinds/edge.hpp"

#include <functional>
#include <vector>

namespace troupe::planner {

/// Operators of each stage of a pipeline.
using stage_chain = std::vector<std::vector<int>>;

/// Calls `visit` with each pipeline of at most `most_stages` stages, until `visit`
/// returns false. Returns false if `visit` did, or the graph has too many ideals.
bool for_each_chain(int operators, const std::vector<edge>& edges, int most_stages,
                    const std::function<bool(const stage_chain&)>& visit);

/// Calls `visit` with each list of `parts` numbers above 0 whose sum is `total`, until
/// `visit` returns false. Returns false if `visit` did.
bool for_each_composition(int total, int parts,
                          const std::function<bool(const std::vector<int>&)>& visit);

/// Calls `visit` with each list of digits below `bases`, until `visit` returns false.
/// Returns false if `visit` did.
bool for_each_number(const std::vector<int>& bases,
                     const std::function<bool(const std::vector<int>&)>& visit);

} // namespace troupe::planner
