// SPDX-License-Identifier: BSD-3-Clause
#include "actors/inference/stage_weights.hpp"

namespace troupe {

stage_weights::stage_weights(const inference_plan& plan, int stage,
                             memory_account& account) {
  for (int l = plan.first_layer(stage); l < plan.end_layer(stage); ++l) {
    const auto layer = static_cast<std::size_t>(l);
    auto& bucket = memory_.emplace_back(plan.whole.layers[layer]->bucket(), account);
    if (bucket.data() != nullptr)
      plan.weights(layer, bucket.data());
    addresses_.push_back(bucket.data());
  }
}

std::int64_t stage_weights::bytes(const inference_plan& plan, int stage) {
  std::int64_t values = 0;
  for (int l = plan.first_layer(stage); l < plan.end_layer(stage); ++l)
    values += plan.whole.layers[static_cast<std::size_t>(l)]->bucket();
  return values * std::int64_t{sizeof(float)};
}

} // namespace troupe
