// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// An option of each operator of a stage: the least time within a memory limit. The
// published planner chooses greedily; this choice is exact.

#include <optional>
#include <vector>

namespace troupe::planner {

struct knapsack_option {
  double seconds = 0;
  double bytes = 0;
};

struct knapsack_choice {
  double seconds = 0;
  std::vector<int> options; ///< One for each row.
};

/// The least sum of seconds whose sum of bytes is at most `memory`, with one option of
/// each row; absent if nothing fits.
/// \pre each row has an option
std::optional<knapsack_choice>
best_options(const std::vector<std::vector<knapsack_option>>& rows, double memory);

} // namespace troupe::planner
