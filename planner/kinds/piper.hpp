// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Piper's problem: stages with replicas, a tensor degree, and an option of each
// operator. Tarnawski, Narayanan, Phanishayee, "Piper: Multidimensional Planner for DNN
// Parallelization", NeurIPS 2021.

#include "planner/kinds/edge.hpp"

#include <tl/expected.hpp>

#include <map>
#include <string>
#include <vector>

namespace troupe::planner {

/// How an operator runs on `tensor` devices.
struct piper_option {
  int tensor = 1;
  std::string name;   ///< "keep" or "recompute" in the published cases.
  double seconds = 0; ///< Forward and backward of a microbatch.
  double weights = 0; ///< Bytes of parameters of a device.
  /// Bytes of a device: for each microbatch in flight, and besides.
  double in_flight_bytes = 0, fixed_bytes = 0;
  std::map<int, double> edge_bytes; ///< Bytes of synchronisation by number of edge.
};

struct piper_operator {
  std::string name;
  std::vector<piper_option> options;
};

struct piper_edge {
  edge ends;
  double bytes = 0;
};

struct piper_problem {
  static constexpr const char* kind = "piper";

  std::vector<piper_operator> operators;
  std::vector<piper_edge> edges;
  int devices = 1;
  int microbatches = 1;
  double bandwidth = 1; ///< Bytes a second.
  double memory = 0;    ///< Bytes of a device.
};

struct piper_stage {
  std::vector<int> operators;
  int tensor = 1;
  int replicas = 1;
  std::vector<std::string> options; ///< The name of each operator's option.
};

/// Stages in the order of the pipeline.
struct piper_plan {
  std::vector<piper_stage> stages;
};

/// Seconds a microbatch: those of the slowest stage. The error is one sentence about
/// the rule that the plan breaks.
tl::expected<double, std::string> cost(const piper_problem& problem,
                                       const piper_plan& plan);

} // namespace troupe::planner
