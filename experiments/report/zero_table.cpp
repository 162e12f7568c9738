// SPDX-License-Identifier: BSD-3-Clause
#include "experiments/report/zero_table.hpp"

#include "plan/replica_rules.hpp"
#include "plan/stage_buckets.hpp"

#include <cmath>

namespace troupe {

namespace {

zero_bytes shared(zero_bytes whole, int replicas, shared_out shares) {
  if (shares >= shared_out::optimizer_state)
    whole.optimizer /= replicas;
  if (shares >= shared_out::gradients)
    whole.gradients /= replicas;
  if (shares >= shared_out::parameters)
    whole.parameters /= replicas;
  return whole;
}

std::int64_t parameters_at(const run_plan& plan, position where) {
  std::int64_t sum = 0;
  for (const auto& l : layers_of(plan, where))
    for (const auto& p : l->parameters())
      sum += p.values();
  return sum;
}

} // namespace

zero_bytes zero_in_mixed_precision(double parameters, int replicas, shared_out shares) {
  return shared({2 * parameters, 2 * parameters, 12 * parameters}, replicas, shares);
}

std::optional<zero_bytes> zero_bytes_of(const run_plan& plan, int rank) {
  double parameters = 0, updated = 0;
  for (const auto& where : plan.hosted_by(rank)) {
    if (plan.bounds_of(where.hosted()).versions > 1)
      return {};
    const auto count = static_cast<double>(parameters_at(plan, where));
    parameters += count;
    updated += where.direction == 0 ? count : 0;
  }
  const int state = optimizer::state_size(plan.work->optimizer);
  return shared({4 * parameters, 4 * parameters, 4.0 * state * updated},
                plan.mesh[axis::data], plan.exchange->shares);
}

zero_traffic zero_traffic_of(const run_plan& plan) {
  const auto& exchange = *plan.exchange;
  const int directions = plan.directions();
  const double microbatches = microbatches_of_direction(plan.sch, plan.dims);
  // A stage's last update may cover fewer microbatches.
  const double updates =
    std::ceil(microbatches * directions / update_size(plan.sch, plan.dims));
  const double readings = plan.recomputes() ? 3 : 2; // of a microbatch
  // Encoded values take a part of four bytes.
  constexpr std::int64_t many = 1 << 20;
  const double encoded =
    static_cast<double>(exchange.compression->bytes(many)) / (4.0 * many);
  zero_traffic result;
  for (int s = 0; s < plan.dims.stages; ++s)
    for (int t = 0; t < plan.mesh[axis::tensor]; ++t) {
      const double bytes = 4.0 * static_cast<double>(parameters_at(plan, {0, 0, s, t}));
      // Each rank in a group of N sends all but the rank's own share.
      const double once = (plan.mesh[axis::data] - 1) * bytes;
      // Each replica sends all that it holds, from one direction to the other and back.
      const double across = (directions - 1) * updates * plan.mesh[axis::data] * bytes;
      result.gradients +=
        across / (shares_out(plan, shared_out::gradients) ? plan.mesh[axis::data] : 1);
      result.parameters +=
        across / (shares_out(plan, shared_out::parameters) ? plan.mesh[axis::data] : 1);
      switch (exchange.shares) {
      case shared_out::nothing:
        result.gradients += 2 * updates * once * encoded;
        break;
      case shared_out::optimizer_state:
        result.gradients += updates * once * encoded;
        result.parameters += updates * once;
        break;
      case shared_out::gradients:
        result.gradients += directions * microbatches * once * encoded;
        result.parameters += updates * once;
        break;
      case shared_out::parameters:
        result.gradients += directions * microbatches * once * encoded;
        result.parameters += readings * directions * microbatches * once;
        break;
      }
    }
  return result;
}

} // namespace troupe
