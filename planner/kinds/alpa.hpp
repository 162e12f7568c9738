// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Alpa's problem between operators: consecutive layers on submeshes that fill a mesh.
// Zheng et al., "Alpa: Automating Inter- and Intra-Operator Parallelism for Distributed
// Deep Learning", OSDI 2022.

#include <tl/expected.hpp>

#include <string>
#include <vector>

namespace troupe::planner {

/// Devices of a mesh or a submesh.
struct mesh_shape {
  int rows = 1;
  int columns = 1;

  int devices() const { return rows * columns; }
};

/// The time of layers `first` to `last` on a submesh.
struct alpa_cost {
  int first = 0;
  int last = 0;
  int submesh = 0;
  int config = 0;     ///< One of several ways to use the submesh.
  double seconds = 0; ///< Of a microbatch.
  int most_later = 0; ///< Later stages for whose microbatches memory suffices.
};

/// Layers without a row of costs on a submesh cannot be there.
struct alpa_problem {
  static constexpr const char* kind = "alpa";

  mesh_shape mesh;
  int layers = 1;
  int microbatches = 1;
  std::vector<mesh_shape> submeshes;
  std::vector<alpa_cost> costs;
};

struct alpa_stage {
  int first = 0;
  int last = 0;
  int submesh = 0;
  int config = 0;
};

/// Stages in the order of the pipeline.
struct alpa_plan {
  std::vector<alpa_stage> stages;
};

/// Seconds a batch: the sum over stages, and the slowest stage for each further
/// microbatch. The error is one sentence about the rule that the plan breaks.
tl::expected<double, std::string> cost(const alpa_problem& problem,
                                       const alpa_plan& plan);

} // namespace troupe::planner
