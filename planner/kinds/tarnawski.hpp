// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Tarnawski's problem: operators on accelerators and CPUs, so that the largest load is
// least. Tarnawski et al., "Efficient Algorithms for Device Placement of DNN Graph
// Operators", NeurIPS 2020.

#include "planner/kinds/edge.hpp"

#include <tl/expected.hpp>

#include <optional>
#include <string>
#include <vector>

namespace troupe::planner {

/// The sets of operators that a device may have.
enum class tarnawski_split {
  pipeline,   ///< Parts have an order, and no forward edge leads back.
  contiguous, ///< No path between forward operators leaves a part and comes back.
  any,        ///< No rule.
};

/// Times have any unit, the same for all operators.
struct tarnawski_operator {
  std::string name;
  double accelerator = 0; ///< Time on an accelerator.
  double cpu = 0;         ///< Time on a CPU.
  double size = 0;        ///< Bytes in an accelerator's memory.
  double transfer = 0;    ///< Time to move the output to or from a CPU's memory.
  bool accelerator_can = true;
  bool backward = false;
  std::optional<int> colour; ///< Operators of a colour share a device.
};

struct tarnawski_problem {
  static constexpr const char* kind = "tarnawski";

  std::vector<tarnawski_operator> operators;
  std::vector<edge> edges;
  tarnawski_split split = tarnawski_split::pipeline;
  int accelerators = 1;
  int cpus = 0;
  double memory = 0; ///< Bytes of an accelerator.
};

struct tarnawski_part {
  bool on_cpu = false;
  std::vector<int> operators;
};

/// Parts on devices of their own; of a pipeline in order.
struct tarnawski_plan {
  std::vector<tarnawski_part> parts;
};

/// The largest load of a device. The error is one sentence about the rule that the plan
/// breaks.
tl::expected<double, std::string> cost(const tarnawski_problem& problem,
                                       const tarnawski_plan& plan);

} // namespace troupe::planner
