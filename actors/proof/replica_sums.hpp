// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "models/gradient_buckets.hpp"
#include "plan/run_plan.hpp"

#include <cstdint>
#include <vector>

namespace troupe {

/// Sums arrays of n values, one of each pipeline, into the first array, in the order of
/// a run of this plan. First the directions of each data replica are summed, into the
/// array of the replica's first direction. Then the data replicas are summed, in the
/// order of the plan's exchange.
/// \param arrays by pipeline; directions of a data replica are adjacent
void sum_replicas(const run_plan& plan, const std::vector<float*>& arrays,
                  std::int64_t n);

/// Sums arrays of n values, one of each data replica, into the first array, in the
/// order of the plan's exchange.
void sum_data_replicas(const run_plan& plan, const std::vector<float*>& arrays,
                       std::int64_t n);

/// Returns the buckets in which a run sums a layer's gradients. A layer has one bucket;
/// a layer with experts has a bucket without the experts, and one for each expert. For
/// a norm, exactly one data replica measures each value.
/// \param layer index in the network
/// \pre plan.work
std::vector<gradient_bucket> summed_buckets(const run_plan& plan, std::size_t layer);

/// Returns the buckets of all layers of a stage.
/// \pre plan.work
gradient_buckets gradient_buckets_of(const run_plan& plan, int stage);

} // namespace troupe
