// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>

namespace troupe {

/// The class of a tensor message between actors. Bytes are counted per class.
enum class traffic : std::uint8_t {
  pipeline,  ///< Activations and gradients, from stage to stage.
  gradients, ///< Gradients of parameters, summed among data replicas or directions.
  /// Parameters, gathered among data replicas, or copied to other directions.
  parameters,
  tensor,  ///< Arrays that tensor shards of a stage sum and gather.
  experts, ///< Rows to experts of other ranks, and the experts' answers.
  tied,    ///< Gradients of a tied matrix, between the matrix's two ends.
};

inline constexpr int traffic_kinds = 6;

} // namespace troupe
