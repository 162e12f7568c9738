// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/plan/run_plan.hpp"
#include "models/gradient_buckets.hpp"

#include <cstdint>
#include <vector>

namespace troupe {

/// Sums n values of all pipelines' arrays into the first, in the order in which a run
/// of this plan does: the directions of each data replica, then those by its exchange.
void sum_replicas(const run_plan& plan, const std::vector<float*>& arrays,
                  std::int64_t n);

/// The same of the data replicas of one direction, in the exchange's order.
void sum_data_replicas(const run_plan& plan, const std::vector<float*>& arrays,
                       std::int64_t n);

/// The buckets that a run sums a layer's gradients in: its own, or where it has experts
/// that of the layer without them and one of each expert. For a norm, data replica
/// after data replica measures what no other one has measured. \pre plan.work
std::vector<gradient_bucket> summed_buckets(const run_plan& plan, std::size_t layer);

/// The same of the layers of a stage. \pre plan.work
gradient_buckets gradient_buckets_of(const run_plan& plan, int stage);

} // namespace troupe
