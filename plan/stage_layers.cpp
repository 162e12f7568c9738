// SPDX-License-Identifier: BSD-3-Clause
#include "plan/stage_layers.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

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
    for (int i = plan.recomputed_units; i < plan.sizes.buckets;
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
    const double values = plan.sizes.gradient / sizeof(float) / plan.sizes.buckets
                          / plan.mesh[axis::tensor];
    return std::vector(
      static_cast<std::size_t>(plan.sizes.buckets),
      std::max<std::int64_t>(std::llround(values), plan.mesh[axis::data]));
  }
  std::vector<std::int64_t> result;
  for (const auto& l : layers_of(plan, p))
    result.push_back(l->bucket());
  return result;
}

} // namespace troupe
