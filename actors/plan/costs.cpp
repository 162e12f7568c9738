// SPDX-License-Identifier: BSD-3-Clause
#include "actors/plan/costs.hpp"

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

nanoseconds cost_table::at(op what, int stage) const {
  const auto& values = of[static_cast<std::size_t>(what)];
  return what == op::recompute && values.empty() ? at(op::forward, stage)
                                                 : value_at(values, stage);
}

nanoseconds cost_table::of_all(const work& what) const {
  const auto kind = static_cast<op>(what.kind);
  auto result = sized(at(kind, what.stage), what.size);
  for (const auto& one : what.also) {
    const auto other = static_cast<op>(one.kind);
    if (!pair.empty() && kind == op::forward && goes_back(other))
      result = sized(value_at(pair, what.stage), (what.size + one.size) / 2);
    else
      result += sized(at(other, one.stage), one.size);
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
  for (auto& values : of_ranks.of)
    share_out(values);
  share_out(of_ranks.pair);
  return of_ranks;
}

cost_model costs_from(cost_table table, int tensor, int update_shares) {
  // All devices have copies of the returned function, and all copies share one table.
  auto shared = std::make_shared<const cost_table>(std::move(table));
  return [table = std::move(shared), tensor, update_shares](const work& what) {
    if (what.kind >= op_count)
      return nanoseconds{0};
    const auto kind = static_cast<op>(what.kind);
    const int parts = kind == op::update ? tensor * update_shares : tensor;
    return table->of_all(what) / parts;
  };
}

cost_model costs_of_sums(double bytes_per_second) {
  return [rate = link_cost{.bytes_per_second = bytes_per_second}](const work& what) {
    return rate.occupied(what.operations * sizeof(float));
  };
}

double update_operations(std::int64_t values) {
  constexpr double operations_a_value = 12; // as many as AdamW
  return operations_a_value * static_cast<double>(values);
}

cost_model costs_by_operations() {
  return [](const work& what) {
    return static_cast<nanoseconds>(
      std::llround(what.operations / operations_a_nanosecond));
  };
}

} // namespace troupe
