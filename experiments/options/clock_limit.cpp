// SPDX-License-Identifier: BSD-3-Clause
#include "experiments/options/clock_limit.hpp"

#include <algorithm>

namespace troupe {

std::string outlasts_clock(const cost_options& costs, const run_plan& plan) {
  if (plan.dims.microbatches < 1)
    return {}; // another check refuses such a plan
  const auto& sizes = costs.sizes;
  double message = sizes.message, gradient = sizes.gradient, buckets = sizes.buckets;
  double sum = sizes.sum, sums = sizes.sums;
  if (plan.work) {
    const auto& layers = plan.work->whole.layers;
    message = gradient = sum = 0;
    buckets = static_cast<double>(layers.size());
    sums = 2 * buckets;
    for (const auto& l : layers) {
      const auto samples = static_cast<double>(plan.batches().largest());
      message = std::max(message, samples * static_cast<double>(l->output_size(1)) * 4);
      gradient += static_cast<double>(l->bucket()) * 4;
    }
    sum = message;
  }
  // A message may wait at each of five ports and links for the messages of all ranks
  // that share it.
  double slowdown = 1;
  for (const double of_replica : costs.slowdowns)
    slowdown = std::max(slowdown, of_replica);
  const auto link = plan.machine.links.slowest();
  const double in_line =
    5.0 * std::clamp(plan.machine.links.ranks_each, 1, plan.ranks());
  const auto transfer_time = [](double bytes, double rate) {
    return rate > 0 ? bytes / rate * 1e9 : 0;
  };
  const auto travels = [&](double bytes) { // including the sum
    return in_line * transfer_time(bytes, link.bytes_per_second)
           + static_cast<double>(link.latency)
           + slowdown * transfer_time(bytes, costs.sum_rate);
  };
  double slowest = travels(message);
  if (plan.mesh[axis::tensor] > 1) // no sum has more rounds than four for each shard
    slowest += 4.0 * plan.mesh[axis::tensor] * sums * travels(sum);
  if (plan.mesh[axis::expert] > 1) // rows go to experts and come back
    slowest += 2 * travels(sizes.experts + sum) * buckets;
  // each end receives the gradient of the other end
  if (plan.work && plan.work->whole.tied())
    slowest += 2 * travels(gradient);
  for (const auto& values : costs.actions.by_op)
    for (const auto value : values)
      slowest += static_cast<double>(value) * slowdown;
  // No exchange has more rounds than two for each data replica.
  const double exchange =
    plan.mesh[axis::data] > 1 || plan.directions() > 1
      ? 2.0 * plan.mesh[axis::data] * buckets * travels(gradient / buckets)
      : 0;
  const auto& dims = plan.dims;
  const double total =
    (slowest * dims.stages + exchange) * dims.microbatches * dims.steps;
  return total < 9e18 ? ""
                      : "--cost makes the run longer than 292 years, the most of the "
                        "virtual clock: give smaller costs, or fewer --steps";
}

} // namespace troupe
