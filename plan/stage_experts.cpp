// SPDX-License-Identifier: BSD-3-Clause
#include "plan/stage_experts.hpp"

#include <cstddef>

namespace troupe {

std::vector<int> experts_of(const run_plan& plan, int stage) {
  std::vector<int> result;
  if (!plan.work) {
    const int size = plan.mesh[axis::expert];
    for (int e = 0; e < size && size > 1; ++e)
      result.push_back(stage * size + e);
    return result;
  }
  const auto s = static_cast<std::size_t>(stage);
  for (std::size_t i = 0; i < plan.work->whole.experts.size(); ++i)
    if (const auto layer_index = static_cast<int>(plan.work->whole.experts[i].of_layer);
        layer_index >= plan.work->first_layers[s]
        && layer_index < plan.work->first_layers[s + 1])
      result.push_back(static_cast<int>(i));
  return result;
}

position host_of(const run_plan& plan, int number, position p) {
  const int size = plan.mesh[axis::expert];
  const int first = p.data / size * size;
  if (!plan.work) {
    p.data = first + number % size;
    return p;
  }
  const auto& asked = plan.work->whole.experts[static_cast<std::size_t>(number)];
  p.data = first + asked.index * size / plan.work->experts.count;
  return p;
}

std::string name_of_expert(const run_plan& plan, int number, position host) {
  if (!plan.work)
    return "expert " + std::to_string(number % plan.mesh[axis::expert]) + " with "
           + plan.name_of(host);
  const auto& asked = plan.work->whole.experts[static_cast<std::size_t>(number)];
  const auto& layer =
    plan.work->whole.layers[asked.of_layer]->parameters().front().name;
  return "expert " + std::to_string(asked.index) + " of "
         + layer.substr(0, layer.find(".ln")) + " with " + plan.name_of(host);
}

} // namespace troupe
