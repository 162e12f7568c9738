// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// A few annotated tensors, from which the layouts of all others follow. Xu et al.,
// "GSPMD: General and Scalable Parallelization for ML Computation Graphs", 2021.

#include <tl/expected.hpp>

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace troupe::planner {

/// The mesh axis of each dimension of a tensor; absent: not split.
using tensor_layout = std::vector<std::optional<std::string>>;

struct einsum_operator {
  std::vector<std::string> inputs;  ///< Names of tensors.
  std::vector<std::string> letters; ///< Indices of each input.
  std::string output;
  std::string output_letters;
  bool reshard = false; ///< No layout passes through this operator.
};

struct propagation_problem {
  static constexpr const char* kind = "propagation";

  std::vector<einsum_operator> operators;
  std::map<std::string, int> mesh; ///< Devices of each axis.
  std::map<std::string, tensor_layout> annotated;
};

/// A collective that an operator needs: "all-gather", operator 3, axis "x", tensor "a".
struct needed_collective {
  std::string name;
  int operation = 0;
  std::string axis;
  std::string tensor;

  auto operator<=>(const needed_collective&) const = default;
};

struct propagation_plan {
  std::map<std::string, tensor_layout> shardings;
  std::vector<needed_collective> collectives;
};

/// The number of collectives.
tl::expected<double, std::string> cost(const propagation_problem& problem,
                                       const propagation_plan& plan);

} // namespace troupe::planner
