// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Operators on devices, whose step is simulated operator by operator. FlexFlow searches
// such placements (Jia, Zaharia, Aiken, MLSys 2019). So does device placement by
// reinforcement learning (Mirhoseini et al., ICML 2017).

#include "planner/kinds/edge.hpp"

#include <tl/expected.hpp>

#include <string>
#include <vector>

namespace troupe::planner {

/// Times have any unit, the same for all operators.
struct placement_operator {
  std::vector<double> seconds; ///< On each device.
  double bytes = 0;            ///< Of the output.
  double memory = 0;           ///< Of the operator on a device.
};

struct placement_problem {
  static constexpr const char* kind = "placement";

  std::vector<placement_operator> operators;
  std::vector<edge> edges;
  std::vector<double> memory;                 ///< Of each device.
  std::vector<std::vector<double>> bandwidth; ///< From device to device.
  std::vector<std::vector<double>> latency;   ///< From device to device.

  int devices() const { return static_cast<int>(memory.size()); }
};

/// The device of each operator.
struct placement_plan {
  std::vector<int> devices;
};

/// The end of the last operator. The error is one sentence about the rule that the plan
/// breaks.
tl::expected<double, std::string> cost(const placement_problem& problem,
                                       const placement_plan& plan);

/// The end of the last operator. Memory is not checked.
/// \pre a device of the problem for each operator
double simulated_time(const placement_problem& problem,
                      const std::vector<int>& devices);

} // namespace troupe::planner
