// SPDX-License-Identifier: BSD-3-Clause
#include "plan/costs.hpp"

#include "messaging/interconnect.hpp"

#include <cmath>
#include <memory>
#include <utility>

namespace troupe {

namespace {

nanoseconds sized(nanoseconds whole, double size) {
  return size == 1 ? whole : std::llround(static_cast<double>(whole) * size);
}

nanoseconds value_at(const std::vector<nanoseconds>& values, int stage) {
  if (values.empty())
    return 0;
  return values[values.size() == 1 ? 0 : static_cast<std::size_t>(stage)];
}

} // namespace

nanoseconds cost_table::duration_of(op operation, int stage) const {
  const auto& values = by_op[static_cast<std::size_t>(operation)];
  return operation == op::recompute && values.empty() ? duration_of(op::forward, stage)
                                                      : value_at(values, stage);
}

nanoseconds cost_table::total_duration(const work& device_work) const {
  const auto kind = static_cast<op>(device_work.kind);
  auto result = sized(duration_of(kind, device_work.stage), device_work.size);
  for (const auto& extra : device_work.also) {
    const auto extra_op = static_cast<op>(extra.kind);
    if (!pair.empty() && kind == op::forward && goes_back(extra_op))
      result =
        sized(value_at(pair, device_work.stage), (device_work.size + extra.size) / 2);
    else
      result += sized(duration_of(extra_op, extra.stage), extra.size);
  }
  return result;
}

cost_table shared_by_stages(cost_table of_ranks, const placement& where,
                            const shape& dims) {
  if (ranks_of(where, dims) == dims.stages)
    return of_ranks;
  const auto share_out = [&](std::vector<nanoseconds>& values) {
    if (values.empty())
      return;
    std::vector<nanoseconds> of_stages;
    for (int stage = 0; stage < dims.stages; ++stage) {
      const int rank = rank_of(where, dims, {0, stage});
      of_stages.push_back(value_at(values, rank)
                          / std::ssize(hosted_by(where, dims, rank)));
    }
    values = std::move(of_stages);
  };
  for (auto& values : of_ranks.by_op)
    share_out(values);
  share_out(of_ranks.pair);
  return of_ranks;
}

cost_model costs_from(cost_table table, int tensor, int update_shares) {
  // All devices have copies of the returned function, and all copies share one table.
  auto shared = std::make_shared<const cost_table>(std::move(table));
  return [table = std::move(shared), tensor, update_shares](const work& device_work) {
    if (device_work.kind >= op_count)
      return nanoseconds{0};
    const auto kind = static_cast<op>(device_work.kind);
    const int parts = kind == op::update ? tensor * update_shares : tensor;
    return table->total_duration(device_work) / parts;
  };
}

cost_model costs_of_sums(double bytes_per_second) {
  return
    [rate = link_cost{.bytes_per_second = bytes_per_second}](const work& device_work) {
      return rate.occupied(device_work.operations * sizeof(float));
    };
}

double update_operations(std::int64_t values) {
  constexpr double operations_a_value = 12; // as many as AdamW
  return operations_a_value * static_cast<double>(values);
}

cost_model costs_by_operations() {
  return [](const work& device_work) {
    return static_cast<nanoseconds>(
      std::llround(device_work.operations / operations_a_nanosecond));
  };
}

} // namespace troupe
