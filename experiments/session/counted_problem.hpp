// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "models/network.hpp"
#include "planner/kinds/pipedream.hpp"

#include <cstdint>
#include <optional>

namespace troupe {

/// Equal devices on one link, for a problem of planning.
struct planned_devices {
  int count = 4;
  double bandwidth = 1e9;       ///< Bytes a second between two devices.
  std::optional<double> memory; ///< Bytes of a device; absent: no limit.
};

/// A network's layers as a problem of PipeDream's kind. Times are counted: operations
/// of a layer over costs_by_operations() of plan/costs.hpp, and a backward takes as
/// long as two forwards. Bytes are of fp32.
/// \param samples of a minibatch
planner::pipedream_problem counted_problem(const network<float>& whole,
                                           std::int64_t samples,
                                           const planned_devices& devices);

} // namespace troupe
