// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// PipeDream's problem: operators in stages on workers, each stage with replicas, on
// machines of machines. Narayanan et al., "PipeDream: Generalized Pipeline Parallelism
// for DNN Training", SOSP 2019.

#include "planner/kinds/edge.hpp"

#include <tl/expected.hpp>

#include <optional>
#include <string>
#include <vector>

namespace troupe::planner {

/// The formulas of PipeDream's costs.
enum class pipedream_model {
  paper,    ///< SOSP 2019: gradients are sent while a stage computes.
  released, ///< The published optimizer: computation, then gradients.
};

/// An operator of a network, for one minibatch.
struct pipedream_operator {
  std::string name;
  double forward = 0;         ///< Seconds.
  double backward = 0;        ///< Seconds.
  double output_bytes = 0;    ///< Bytes of the output.
  double parameter_bytes = 0; ///< Bytes of the parameters.
};

/// Equal members of a level: workers of a machine, or machines of a group.
struct pipedream_level {
  int workers = 1;
  double bandwidth = 1; ///< Bytes a second between two members.
};

/// \inv edges lead from a lower to a higher operator
struct pipedream_problem {
  static constexpr const char* kind = "pipedream";

  std::vector<pipedream_operator> operators;
  std::vector<edge> edges;
  pipedream_model model = pipedream_model::paper;
  std::vector<pipedream_level> levels; ///< The innermost level first.
  std::optional<double> memory;        ///< Bytes of a worker.
  bool straight = false;               ///< No stage has replicas.
};

struct pipedream_stage {
  std::vector<int> operators;
  int replicas = 1;
  /// Stages within one replica, on the level below; empty on level 0.
  std::vector<pipedream_stage> inner;
};

/// Stages in the order of the pipeline.
struct pipedream_plan {
  std::vector<pipedream_stage> stages;
};

/// Seconds a minibatch in steady state: the slowest stage or link of all levels.
/// The error is one sentence about the rule that the plan breaks.
tl::expected<double, std::string> cost(const pipedream_problem& problem,
                                       const pipedream_plan& plan);

/// Seconds a minibatch of a stage of `work` seconds and `weights` bytes of parameters.
double stage_seconds(pipedream_model model, double work, double weights, int replicas,
                     double bandwidth);

/// Seconds a minibatch of a link over which `bytes` go forward and their gradients
/// back.
/// \param sender,receiver replicas of the stages at the ends
/// \param is_first the sender is the first stage
double link_seconds(pipedream_model model, double bytes, double bandwidth, int sender,
                    int receiver, bool is_first);

} // namespace troupe::planner
