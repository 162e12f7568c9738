// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "messaging/position.hpp"
#include "messaging/replica_exchange.hpp"
#include "models/bucket_share.hpp"
#include "plan/layout.hpp"
#include "plan/run_plan.hpp"

#include <cstdint>
#include <vector>

// Which data replicas hold which shares of a stage's parameters, gradients and
// optimizer state.

namespace troupe {

/// Number of data replicas that together hold one model.
int data_in_snapshot(const run_plan& plan);

/// True if an evaluation reads the parameters of `p`. An evaluation needs each
/// parameter once: from direction 0 of as many data replicas as hold one model.
bool in_snapshot(const run_plan& plan, position p);

/// Number of data replicas or parameter servers that divide a stage's optimizer
/// state; 1 if none do.
int state_shares(const run_plan& plan);

/// The share of each bucket whose optimizer state is at `p`. The stage's optimizer
/// shard or a parameter server holds that state.
bucket_shares state_shares_of(const run_plan& plan, position p);

/// Number of parameter values in all shares of `state_shares_of(plan, p)`, over all
/// buckets of a stage.
std::int64_t state_values_of(const run_plan& plan, position p);

/// The share of each bucket that the stage's optimizer shard updates: the whole
/// bucket without ZeRO. Only the data replicas that sum a bucket divide that bucket.
bucket_shares shares_of(const run_plan& plan, position p);

/// Extent of the arrays of `tensors` that a stage holds: whole buckets, or shares of
/// buckets.
bucket_extent extent_of(const run_plan& plan, shared_out tensors);

/// Number of values that a stage holds of each bucket of `tensors`: all, or a share.
std::vector<std::int64_t> held_of(const run_plan& plan, shared_out tensors, position p);

/// The optimizer shards whose gradients the norm at `p` covers, in the order in which
/// squares are summed. The first of these shards sums the squares.
/// \pre plan.work, and the optimizer clips
std::vector<position> norm_group(const run_plan& plan, position p);

/// The optimizer shards whose squares make the norm of an update's gradients, whether
/// or not the optimizer clips. Empty in a simulation, under a local rule, and where an
/// update is of one replica's gradients. Empty also without clipping if a shard is on
/// a GPU, as the host would wait for the norm.
std::vector<position> norm_shards(const run_plan& plan);

/// True if the optimizer shard at `p` measures its gradients. norm_shards() is empty if
/// any shard of a norm does not.
bool measures_gradient(const run_plan& plan, position p);

/// The data replicas that sum each bucket. For an expert's bucket: the replicas that
/// host that expert.
std::vector<bucket_group> groups_of(const run_plan& plan, position p);

} // namespace troupe
