// SPDX-License-Identifier: BSD-3-Clause
#include "plan/stage_buckets.hpp"

#include "plan/stage_experts.hpp"
#include "plan/stage_layers.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>

namespace troupe {

std::vector<layer_bucket> layer_buckets(const run_plan& plan, position p) {
  std::vector<layer_bucket> result;
  const auto s = static_cast<std::size_t>(p.stage);
  const auto experts = experts_of(plan, p.stage);
  for (int i = plan.work->first_layers[s]; i < plan.work->first_layers[s + 1]; ++i) {
    const auto layer = static_cast<std::size_t>(i);
    result.push_back({layer, -1, network_of(plan, p).layers[layer]});
    for (const int number : experts)
      if (const auto& expert_entry =
            plan.work->whole.experts[static_cast<std::size_t>(number)];
          expert_entry.of_layer == layer && host_of(plan, number, p) == p)
        result.push_back({layer, number, expert_entry.expert});
  }
  return result;
}

layer_list<float> layers_of(const run_plan& plan, position p) {
  layer_list<float> result;
  for (auto& bucket : layer_buckets(plan, p))
    result.push_back(std::move(bucket.owner));
  return result;
}

std::vector<std::int64_t> buckets_of(const run_plan& plan, position p) {
  if (!plan.work) {
    // Each bucket has at least one value per data replica, so that messages of zero
    // bytes still take the latency.
    const double values = plan.work.simulated().gradient / sizeof(float)
                          / plan.work.simulated().buckets / plan.mesh[axis::tensor];
    return std::vector(
      static_cast<std::size_t>(plan.work.simulated().buckets),
      std::max<std::int64_t>(std::llround(values), plan.mesh[axis::data]));
  }
  std::vector<std::int64_t> result;
  for (const auto& l : layers_of(plan, p))
    result.push_back(l->bucket());
  return result;
}

} // namespace troupe
