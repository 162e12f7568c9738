#include "experiments/report/zero_table.hpp"

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
  for (const auto& l : plan.layers_of(where))
    for (const auto& p : l->parameters())
      sum += p.values();
  return sum;
}

} // namespace

zero_bytes zero_in_fp32(double parameters, int state, int replicas, shared_out shares) {
  return shared({4 * parameters, 4 * parameters, 4.0 * state * parameters}, replicas,
                shares);
}

zero_bytes zero_in_mixed_precision(double parameters, int replicas, shared_out shares) {
  return shared({2 * parameters, 2 * parameters, 12 * parameters}, replicas, shares);
}

std::int64_t parameters_of_rank(const run_plan& plan, int rank) {
  std::int64_t sum = 0;
  for (const auto& where : plan.hosted_by(rank))
    sum += parameters_at(plan, where);
  return sum;
}

zero_traffic zero_traffic_of(const run_plan& plan) {
  const auto& exchange = *plan.exchange;
  const int directions = plan.directions();
  const double microbatches = microbatches_of_direction(plan.sch, plan.dims);
  const double updates = microbatches * directions / update_size(plan.sch, plan.dims);
  zero_traffic result;
  for (int s = 0; s < plan.dims.stages; ++s)
    for (int t = 0; t < plan.tensor; ++t) {
      const double bytes = 4.0 * static_cast<double>(parameters_at(plan, {0, 0, s, t}));
      // All but its own share, of each rank in a group of N.
      const double once = (plan.data - 1) * bytes;
      // What each replica holds, from one direction to the other and back.
      const double across = (directions - 1) * updates * plan.data * bytes;
      result.gradients +=
        across / (plan.shares_out(shared_out::gradients) ? plan.data : 1);
      result.parameters +=
        across / (plan.shares_out(shared_out::parameters) ? plan.data : 1);
      switch (exchange.shares) {
      case shared_out::nothing:
        result.gradients += 2 * updates * once;
        break;
      case shared_out::optimizer_state:
        result.gradients += updates * once;
        result.parameters += updates * once;
        break;
      case shared_out::gradients:
        result.gradients += directions * microbatches * once;
        result.parameters += updates * once;
        break;
      case shared_out::parameters:
        result.gradients += directions * microbatches * once;
        result.parameters += 2 * directions * microbatches * once;
        break;
      }
    }
  return result;
}

} // namespace troupe
