// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/inference/inference_plan.hpp"
#include "kernels/memory.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace troupe {

/// The parameters of an inference stage, which are never updated: one bucket per layer.
class stage_weights {
public:
  /// Allocates the memory and reads the weights.
  /// \param account outlives this object
  /// \throws std::bad_alloc if memory is short
  /// \throws exceptions of the plan's weights
  stage_weights(const inference_plan& plan, int stage, memory_account& account);

  /// Buckets in the order of the stage's layers, null for a layer without parameters;
  /// valid as long as this object.
  std::span<const float* const> buckets() const { return addresses_; }

  /// Bytes that a stage's parameters take.
  static std::int64_t bytes(const inference_plan& plan, int stage);

private:
  std::vector<tensor_memory> memory_;
  std::vector<const float*> addresses_;
};

} // namespace troupe
