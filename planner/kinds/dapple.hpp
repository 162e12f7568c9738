// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// DAPPLE's problem: consecutive layers on sets of devices, for a batch under early
// backward scheduling (1F1B). Fan et al., "DAPPLE: A Pipelined Data Parallel Approach
// for Training Large Models", PPoPP 2021.

#include <tl/expected.hpp>

#include <string>
#include <vector>

namespace troupe::planner {

/// Times of stages, with communication between two stages as a stage of its own.
struct dapple_latency_problem {
  static constexpr const char* kind = "dapple_latency";

  std::vector<double> forward;  ///< Of a microbatch.
  std::vector<double> backward; ///< Of a microbatch.
  std::vector<double> exchange; ///< Sum of gradients between replicas.
  int microbatches = 1;
};

/// The terms of DAPPLE's estimate of a batch.
struct dapple_latency {
  int pivot = 0; ///< The stage whose steady phase bounds the pipeline.
  double warm_up = 0, steady = 0, end = 0;

  double sum() const { return warm_up + steady + end; }
};

/// DAPPLE's formula.
/// \pre a stage or more, and as many backwards and exchanges as forwards
dapple_latency latency(const dapple_latency_problem& stages);

struct dapple_layer {
  double forward = 0;         ///< Seconds of a microbatch.
  double backward = 0;        ///< Seconds of a microbatch.
  double output_bytes = 0;    ///< Bytes of a microbatch.
  double parameter_bytes = 0; ///< Bytes of gradients.
};

struct dapple_problem {
  static constexpr const char* kind = "dapple";

  std::vector<dapple_layer> layers;
  std::vector<int> machines; ///< Devices of each machine, numbered on.
  double inside = 1;         ///< Bytes a second within a machine.
  double between = 1;        ///< Bytes a second between machines.
  int microbatches = 1;

  int devices() const;
};

struct dapple_stage {
  int first = 0;
  int last = 0;
  std::vector<int> devices;
};

/// Stages in the order of the pipeline.
struct dapple_plan {
  std::vector<dapple_stage> stages;
};

/// Seconds a batch by DAPPLE's formula. The error is one sentence about the rule that
/// the plan breaks.
tl::expected<double, std::string> cost(const dapple_problem& problem,
                                       const dapple_plan& plan);
tl::expected<double, std::string> cost(const dapple_latency_problem& problem,
                                       const dapple_latency& plan);

} // namespace troupe::planner
