// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// A strategy of each operator: Alpa's problem within operators (Zheng et al., OSDI
// 2022), Tofu's (Wang, Huang, Li, EuroSys 2019) and FlexFlow's.

#include <tl/expected.hpp>

#include <optional>
#include <string>
#include <vector>

namespace troupe::planner {

/// An operator. The vectors have one value for each strategy.
struct intra_node {
  std::string name;
  std::vector<std::string> strategies;
  std::vector<double> cost;
  std::vector<double> memory;
};

/// The cost of moving the output of `from` to the layout that `to` reads.
struct intra_edge {
  int from = 0;
  int to = 0;
  std::vector<std::vector<double>> cost; ///< By strategy of `from`, then of `to`.
};

struct intra_problem {
  static constexpr const char* kind = "intra";

  std::vector<intra_node> nodes;
  std::vector<intra_edge> edges;
  std::optional<double> memory; ///< Bytes of a device for all operators.
  int mesh_axes = 0; ///< Axes of the mesh that strategies name as "m|-"; 0: unknown.
};

/// The strategy of each operator.
struct intra_plan {
  std::vector<int> strategies;
};

/// The sum over nodes and edges. The error is one sentence about the rule that the plan
/// breaks.
tl::expected<double, std::string> cost(const intra_problem& problem,
                                       const intra_plan& plan);

} // namespace troupe::planner
