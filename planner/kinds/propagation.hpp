// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// A few annotated tensors, from which the layouts of all others follow. Xu et al.,
// "GSPMD: General and Scalable Parallelization for ML Computation Graphs", 2021.

#include "plan/propagation.hpp"

#include <tl/expected.hpp>

#include <map>
#include <string>
#include <vector>

namespace troupe::planner {

struct propagation_problem {
  static constexpr const char* kind = "propagation";

  std::vector<einsum_operator> operators;
  std::map<std::string, int> mesh; ///< Devices of each axis.
  tensor_layouts annotated;
};

struct propagation_plan {
  tensor_layouts shardings; ///< Of all tensors.
  std::vector<needed_collective> collectives;
};

/// The number of collectives. The error is one sentence: a tensor has no layout, or
/// another layout than its annotation, or the collectives are not those that the
/// layouts need.
tl::expected<double, std::string> cost(const propagation_problem& problem,
                                       const propagation_plan& plan);

} // namespace troupe::planner
