// SPDX-License-Identifier: BSD-3-Clause
#include "actors/proof/replica_sums.hpp"

#include "messaging/sum_in_order.hpp"
#include "plan/replica_rules.hpp"
#include "plan/stage_experts.hpp"
#include "plan/stage_layers.hpp"

#include <algorithm>

namespace troupe {

void sum_replicas(const run_plan& plan, const std::vector<float*>& arrays,
                  std::int64_t n) {
  const auto directions = static_cast<std::size_t>(plan.directions());
  std::vector<float*> of_data;
  for (std::size_t r = 0; r < arrays.size(); r += directions) {
    for (auto d = r + 1; d < r + directions; ++d)
      for (std::int64_t i = 0; i < n; ++i)
        arrays[r][i] += arrays[d][i];
    of_data.push_back(arrays[r]);
  }
  sum_data_replicas(plan, of_data, n);
}

void sum_data_replicas(const run_plan& plan, const std::vector<float*>& arrays,
                       std::int64_t n) {
  if (plan.mesh[axis::data] == 1)
    return;
  const auto& order = plan.exchange->sum;
  const auto coder = plan.exchange->compression->make();
  const std::vector<const float*> read{arrays.begin(), arrays.end()};
  auto sum =
    sum_in_order(order.name, read, chunks::even(n, order.chunks(plan.mesh[axis::data])),
                 coder.get());
  // In these orders the sum itself is in a last message, which all replicas keep.
  if (order.operation == collective_operation::all_reduce && order.name != "naive")
    for (auto& value : sum)
      value = coder->coded(value);
  std::ranges::copy(sum, arrays.front());
}

std::vector<gradient_bucket> summed_buckets(const run_plan& plan, std::size_t layer) {
  const bool shared = shares_out(plan, shared_out::optimizer_state);
  const int replicas = shared ? plan.mesh[axis::data] : plan.mesh[axis::expert];
  gradient_bucket without_experts{plan.work->whole.layers[layer], {}};
  for (int d = 0; d < replicas; ++d)
    without_experts.measured.push_back(
      shared   ? std::optional{bucket_share{d, plan.mesh[axis::data]}}
      : d == 0 ? std::optional{bucket_share{}}
               : std::nullopt);
  std::vector<gradient_bucket> result{std::move(without_experts)};
  const auto& experts = plan.work->whole.experts;
  for (std::size_t e = 0; e < experts.size(); ++e) {
    if (experts[e].of_layer != layer)
      continue;
    result.front().layout = network_of(plan, {}).layers[layer];
    auto& expert_bucket = result.emplace_back(gradient_bucket{experts[e].expert, {}});
    for (int d = 0; d < replicas; ++d)
      if (host_of(plan, static_cast<int>(e), {d, 0, 0}).data == d)
        expert_bucket.measured.emplace_back(bucket_share{
          d / plan.mesh[axis::expert], replicas / plan.mesh[axis::expert]});
      else
        expert_bucket.measured.emplace_back();
  }
  return result;
}

gradient_buckets gradient_buckets_of(const run_plan& plan, int stage) {
  const auto s = static_cast<std::size_t>(stage);
  layer_list<float> layers;
  std::vector<std::vector<gradient_bucket>> made_of;
  for (int i = plan.work->first_layers[s]; i < plan.work->first_layers[s + 1]; ++i) {
    const auto layer = static_cast<std::size_t>(i);
    layers.push_back(plan.work->whole.layers[layer]);
    made_of.push_back(summed_buckets(plan, layer));
  }
  return {std::move(layers), std::move(made_of)};
}

} // namespace troupe
