#include "actors/plan/costs.hpp"

#include "messaging/interconnect.hpp"

#include <cmath>
#include <memory>
#include <utility>

namespace troupe {

nanoseconds cost_table::at(op what, int stage) const {
  const auto& values = of[static_cast<std::size_t>(what)];
  if (values.empty())
    return 0;
  return values[values.size() == 1 ? 0 : static_cast<std::size_t>(stage)];
}

cost_model costs_from(cost_table table, int tensor, int update_shares) {
  // Each device has a copy of this: of one table.
  auto shared = std::make_shared<const cost_table>(std::move(table));
  return [table = std::move(shared), tensor, update_shares](const work& what) {
    if (what.kind >= op_count)
      return nanoseconds{0};
    const auto kind = static_cast<op>(what.kind);
    const int parts = kind == op::update ? tensor * update_shares : tensor;
    return table->at(kind, what.stage) / parts;
  };
}

cost_model costs_of_sums(double bytes_per_second) {
  return [rate = link_cost{.bytes_per_second = bytes_per_second}](const work& what) {
    return rate.occupied(what.operations * sizeof(float));
  };
}

double update_operations(std::int64_t values) {
  constexpr double operations_a_value = 12; // AdamW's
  return operations_a_value * static_cast<double>(values);
}

cost_model costs_by_operations() {
  return [](const work& what) {
    return static_cast<nanoseconds>(
      std::llround(what.operations / operations_a_nanosecond));
  };
}

} // namespace troupe
