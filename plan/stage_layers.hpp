// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "messaging/position.hpp"
#include "models/network.hpp"
#include "models/slice.hpp"
#include "models/slices_by_length.hpp"
#include "plan/run_plan.hpp"

#include <cstdint>
#include <vector>

// The layers of a stage.

namespace troupe {

/// The network whose layers the stage at `p` runs: the whole, a tensor shard's, or
/// the network without experts. Owned by the plan.
/// \pre plan.work
const network<float>& network_of(const run_plan& plan, position p);

/// The layers that a stage runs, for sequences of the network's full length.
/// \param team_size threads of the streams that compute the passes
/// \pre plan.work
slice<float> slice_of(const run_plan& plan, position p, int team_size = 1);

/// The layers that a stage runs, for the sequence lengths of all microbatches.
/// \param team_size as for slice_of()
/// \pre plan.work
slices_by_length<float> slices_of(const run_plan& plan, position p, int team_size = 1);

/// Values per sample that a stage receives from the stage before; 0 for the first
/// stage. Two values of bf16 count as one.
/// \param length tokens of the sample's sequence, as given by batches(); 0: full
/// length
/// \pre plan.work
std::int64_t values_below(const run_plan& plan, position p, std::int64_t length);

/// First layers of the segments that a stage recomputes, as indexes among the stage's
/// layers. Only 0 without recomputation, or if the whole stage is one segment. In a
/// simulation: indexes among the stage's buckets.
std::vector<int> segments_of(const run_plan& plan, int stage);

/// Floating-point operations of a stage's forward, including experts, for one sample
/// of the network's full length.
/// \pre plan.work
double operations_of(const run_plan& plan, int stage);

} // namespace troupe
