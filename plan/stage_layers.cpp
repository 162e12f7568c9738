// SPDX-License-Identifier: BSD-3-Clause
#include "plan/stage_layers.hpp"

#include <cstddef>

namespace troupe {

const network<float>& network_of(const run_plan& plan, position p) {
  return plan.work->shards.empty()
           ? plan.work->whole
           : plan.work->shards[static_cast<std::size_t>(p.tensor)];
}

namespace {

slice<float> layers_of_stage(const run_plan& plan, position p,
                             const network<float>& whole, int team_size) {
  const auto s = static_cast<std::size_t>(p.stage);
  const auto segments = segments_of(plan, p.stage);
  return {
    whole,
    plan.work->first_layers[s],
    plan.work->first_layers[s + 1],
    team_size,
    {segments, segments.size() > 1 && plan.bounds_of(p.hosted()).split_backward > 0}};
}

} // namespace

slice<float> slice_of(const run_plan& plan, position p, int team_size) {
  return layers_of_stage(plan, p, network_of(plan, p), team_size);
}

slices_by_length<float> slices_of(const run_plan& plan, position p, int team_size) {
  return {network_of(plan, p), plan.batches(), [&](const network<float>& whole) {
            return layers_of_stage(plan, p, whole, team_size);
          }};
}

std::int64_t values_below(const run_plan& plan, position p, std::int64_t length) {
  if (p.stage == 0)
    return 0;
  const auto& whole = network_of(plan, p);
  const auto first = static_cast<std::size_t>(
    plan.work->first_layers[static_cast<std::size_t>(p.stage)]);
  return length == 0 || length == whole.rows
           ? whole.layers[first]->input_size(1)
           : of_length(whole, length).layers[first]->input_size(1);
}

std::vector<int> segments_of(const run_plan& plan, int stage) {
  std::vector<int> result{0};
  if (!plan.recomputes() || plan.recomputed_units == 0)
    return result;
  if (!plan.work) {
    for (int i = plan.recomputed_units; i < plan.work.simulated().buckets;
         i += plan.recomputed_units)
      result.push_back(i);
    return result;
  }
  const auto s = static_cast<std::size_t>(stage);
  const auto& units = plan.work->whole.unit_of_layer;
  const auto unit_of = [&](int layer) {
    return units[static_cast<std::size_t>(layer)];
  };
  const int first = plan.work->first_layers[s];
  int begin = first;
  for (int layer = first; layer < plan.work->first_layers[s + 1]; ++layer)
    if (unit_of(layer) - unit_of(begin) >= plan.recomputed_units) {
      begin = layer;
      result.push_back(layer - first);
    }
  return result;
}

double operations_of(const run_plan& plan, int stage) {
  const auto s = static_cast<std::size_t>(stage);
  double result = 0;
  for (int i = plan.work->first_layers[s]; i < plan.work->first_layers[s + 1]; ++i)
    result += plan.work->whole.layers[static_cast<std::size_t>(i)]->operations();
  return result;
}
} // namespace troupe
