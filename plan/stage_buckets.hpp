// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "messaging/position.hpp"
#include "models/layer.hpp"
#include "plan/layout.hpp"
#include "plan/run_plan.hpp"

#include <cstdint>
#include <vector>

// The buckets of a stage.

namespace troupe {

/// The buckets of a stage: for each layer the layer's own bucket, then the buckets of
/// experts that are hosted at `p`.
/// \pre plan.work
std::vector<layer_bucket> layer_buckets(const run_plan& plan, position p);
layer_list<float> layers_of(const run_plan& plan, position p);

/// Number of fp32 values of each bucket of a stage. In a simulation derived from
/// `sizes`; each bucket then has at least as many values as there are data replicas.
std::vector<std::int64_t> buckets_of(const run_plan& plan, position p);

} // namespace troupe
