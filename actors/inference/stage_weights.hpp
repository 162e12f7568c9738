// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/inference/inference_plan.hpp"
#include "kernels/memory.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace troupe {

/// The parameters of a stage that nobody updates: a bucket a layer.
class stage_weights {
public:
  /// Takes their memory, and reads them. \throws std::bad_alloc, and what the plan's
  /// weights throw
  stage_weights(const inference_plan& plan, int stage, memory_account& account);

  std::span<const float* const> buckets() const { return places_; }

  /// Bytes that they take.
  static std::int64_t bytes(const inference_plan& plan, int stage);

private:
  std::vector<tensor_memory> memory_;
  std::vector<const float*> places_;
};

} // namespace troupe
