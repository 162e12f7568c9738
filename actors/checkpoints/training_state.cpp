// SPDX-License-Identifier: BSD-3-Clause
#include "actors/checkpoints/training_state.hpp"

#include <algorithm>

namespace troupe {

void resume_from(std::shared_ptr<const training_state> saved, run_plan& plan) {
  const auto source_of = [&](const whole_buckets& from) -> weight_source {
    return [saved, &from](std::size_t layer, float* bucket) {
      std::ranges::copy(from[layer], bucket);
    };
  };
  auto& work = *plan.work;
  plan.dims.batches_before = saved->batches;
  plan.dims.older = static_cast<int>(saved->older.size());
  work.weights = source_of(saved->parameters);
  work.earlier = {.updates = saved->updates};
  for (const auto& version : saved->older)
    work.earlier.older.push_back(source_of(version));
  for (const auto& array : saved->state)
    work.earlier.state.push_back({array.name, source_of(array.values)});
}

} // namespace troupe
