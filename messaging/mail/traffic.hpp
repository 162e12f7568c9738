// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>

namespace troupe {

/// What tensors between actors are for.
enum class traffic : std::uint8_t {
  pipeline,   ///< Activations and their gradients, from stage to stage.
  gradients,  ///< Of parameters, summed among data replicas or directions.
  parameters, ///< Gathered among data replicas, or copied to the other direction.
  tensor,     ///< What tensor shards of a stage sum and gather.
  experts,    ///< Rows to experts of other ranks, and back.
  tied,       ///< Gradients of a tied matrix, between its two ends.
};

inline constexpr int traffic_kinds = 6;

} // namespace troupe
