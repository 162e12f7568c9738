#include "actors/proof/replica_sums.hpp"

#include "messaging/sum_in_order.hpp"

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
  if (plan.data == 1)
    return;
  const auto& order = plan.exchange->sum;
  const std::vector<const float*> read{arrays.begin(), arrays.end()};
  const auto sum =
    sum_in_order(order.name, read, chunks::even(n, order.chunks(plan.data)));
  std::ranges::copy(sum, arrays.front());
}

layer_list<float> summed_layers(const run_plan& plan, std::size_t layer) {
  layer_list<float> result;
  for (const auto& expert : plan.work->whole.experts)
    if (expert.of_layer == layer)
      result.push_back(expert.what);
  result.insert(result.begin(), result.empty() ? plan.work->whole.layers[layer]
                                               : plan.network_of({}).layers[layer]);
  return result;
}

gradient_buckets gradient_buckets_of(const run_plan& plan, int stage) {
  const auto s = static_cast<std::size_t>(stage);
  layer_list<float> layers;
  std::vector<layer_list<float>> made_of;
  for (int i = plan.work->first_layers[s]; i < plan.work->first_layers[s + 1]; ++i) {
    const auto layer = static_cast<std::size_t>(i);
    layers.push_back(plan.work->whole.layers[layer]);
    made_of.push_back(summed_layers(plan, layer));
  }
  return {std::move(layers), std::move(made_of)};
}

} // namespace troupe
