// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "messaging/position.hpp"
#include "messaging/replica_exchange.hpp"
#include "models/bucket_share.hpp"
#include "plan/layout.hpp"
#include "plan/run_plan.hpp"

#include <cstdint>
#include <vector>

// Which data replicas hold and update which shares of a stage's parameters, gradients
// and optimizer state, and when replicas exchange them.

namespace troupe {

/// True if each data replica holds a share of `tensors`, not all.
inline bool shares_out(const run_plan& plan, shared_out tensors) {
  return plan.mesh[axis::data] > 1 && plan.exchange->shares >= tensors;
}

/// True if the updates of the plan's parameters are by `updater`.
inline bool updates_are_by(const run_plan& plan, update_by updater) {
  return updater
         == (plan.mesh[axis::data] > 1 ? plan.exchange->updates
                                       : update_by::all_replicas);
}

/// Number of parameter servers in a run: one for each stage of each data replica and
/// tensor shard, on the rank of the stage's first direction. 0 without servers.
inline int server_count(const run_plan& plan) {
  return updates_are_by(plan, update_by::servers)
           ? plan.mesh[axis::data] * plan.mesh[axis::tensor] * plan.dims.stages
           : 0;
}

/// Number of devices that compute at the same time: one per rank, and one per parameter
/// server.
inline int device_count(const run_plan& plan) {
  return plan.ranks() + server_count(plan);
}

/// Number of devices of some ranks, as for device_count() above.
int device_count(const run_plan& plan, const std::vector<int>& ranks);

/// Number of data replicas that together hold one model.
inline int data_in_snapshot(const run_plan& plan) {
  return shares_out(plan, shared_out::parameters) ? plan.mesh[axis::data]
                                                  : plan.mesh[axis::expert];
}

/// True if an evaluation reads the parameters of `p`. An evaluation needs each
/// parameter once: from direction 0 of as many data replicas as hold one model.
inline bool in_snapshot(const run_plan& plan, position p) {
  return p.direction == 0 && p.data < data_in_snapshot(plan);
}

/// True if `p` holds parameters that data replicas update one by one. Such parameters
/// are at every server, or with Hogwild at data replica 0 for all replicas.
inline bool has_shared_parameters(const run_plan& plan, position p) {
  return updates_are_by(plan, update_by::servers)
         || (updates_are_by(plan, update_by::itself) && p.data == 0);
}

/// True if all data replicas end with equal versions. Servers with a staleness of 0
/// answer all replicas with the same values. A user's exchange must give all replicas
/// equal gradients.
inline bool replicas_agree(const run_plan& plan) {
  return updates_are_by(plan, update_by::all_replicas) || plan.exchange->staleness == 0;
}

/// Number of data replicas or parameter servers that divide a stage's optimizer
/// state; 1 if none do.
inline int state_shares(const run_plan& plan) {
  return updates_are_by(plan, update_by::servers)
             || shares_out(plan, shared_out::optimizer_state)
           ? plan.mesh[axis::data]
           : 1;
}

/// The share of each bucket whose optimizer state is at `p`. The stage's optimizer
/// shard or a parameter server holds that state.
bucket_shares state_shares_of(const run_plan& plan, position p);

/// Number of parameter values in all shares of `state_shares_of(plan, p)`, over all
/// buckets of a stage.
std::int64_t state_values_of(const run_plan& plan, position p);

/// The share of each bucket that the stage's optimizer shard updates: the whole
/// bucket without ZeRO. Only the data replicas that sum a bucket divide that bucket.
bucket_shares shares_of(const run_plan& plan, position p);

/// True if data replicas exchange gradients once per update. False for ZeRO 2 and 3,
/// where every backward sums gradients over replicas. False also where an update is
/// of one replica's gradients.
inline bool exchanges_at_update(const run_plan& plan) {
  return plan.mesh[axis::data] > 1 && updates_are_by(plan, update_by::all_replicas)
         && !shares_out(plan, shared_out::gradients);
}

/// True if data replicas exchange gradients once per update by sums, not by a meeting
/// that the user provides.
inline bool sums_at_update(const run_plan& plan) {
  return exchanges_at_update(plan) && !plan.user_exchange;
}

/// True if optimizer shards are notified of each bucket with complete gradients.
inline bool reports_buckets(const run_plan& plan) {
  return sums_at_update(plan) || plan.directions() > 1;
}

/// True if the notification comes as soon as a backward has completed the bucket. If
/// false, the notification comes when the update starts.
/// \pre reports_buckets(plan)
inline bool reports_immediately(const run_plan& plan) {
  return plan.directions() > 1
           ? plan.sch.eager && !shares_out(plan, shared_out::gradients)
           : sums_at_update(plan);
}

/// True if data replicas gather the parameters once per update. If false, replicas
/// gather before every use, or never.
inline bool gathers_at_update(const run_plan& plan) {
  return shares_out(plan, shared_out::optimizer_state)
         && !shares_out(plan, shared_out::parameters);
}

/// Extent of the arrays of `tensors` that a stage holds: whole buckets, or shares of
/// buckets.
inline bucket_extent extent_of(const run_plan& plan, shared_out tensors) {
  return shares_out(plan, tensors) ? bucket_extent::share : bucket_extent::whole;
}

/// True if older versions store the matrices of products as bf16. This requires a run
/// that stores bf16 and stages that hold whole parameters: a share of a bucket may
/// begin within a matrix.
inline bool rounds_older_versions(const run_plan& plan) {
  return plan.work && plan.work->whole.options.stored == precision::bf16
         && !shares_out(plan, shared_out::parameters);
}

/// True if matrices stay packed for bf16 products: the run stores bf16, several
/// microbatches of a direction read a version, and stages hold whole parameters.
inline bool keeps_packed_weights(const run_plan& plan) {
  return rounds_older_versions(plan)
         && update_size(plan.sch, plan.dims) > plan.directions();
}

/// Number of values that a stage holds of each bucket of `tensors`: all, or a share.
std::vector<std::int64_t> held_of(const run_plan& plan, shared_out tensors, position p);

/// The optimizer shards whose gradients the norm at `p` covers, in the order in which
/// squares are summed. The first of these shards sums the squares.
/// \pre plan.work, and the optimizer clips
std::vector<position> norm_group(const run_plan& plan, position p);

/// The data replicas that sum each bucket. For an expert's bucket: the replicas that
/// host that expert.
std::vector<bucket_group> groups_of(const run_plan& plan, position p);

/// Number of copies of a stage's parameters that evaluations may need at the same
/// time; 0 if no evaluation reads the stage. Evaluations need two copies, and one
/// more for each whole batch of microbatches that stage 0 stashes.
int snapshots_of(const run_plan& plan, position p);

/// Group number of a rank. Ranks of one group end after the same update when a run is
/// interrupted. All ranks form group 0. If no data replica waits for another, the
/// ranks of each data replica form a group instead, with the replica's index.
int stops_with(const run_plan& plan, int rank);

/// True if passes of a stage have meetings between pieces: with tensor shards, with
/// data replicas that divide the layers, or with experts.
bool passes_meet(const run_plan& plan, int stage);

/// True if a tensor between the stage at `lower` and the next stage is sent at
/// launch, provided that both stages are in one process. This needs GPUs for both
/// stages, as streams of GPUs wait for each other. False for local rules, which
/// choose by arrivals. False if passes of one of both stages have meetings, as actors
/// move the arrays of meetings. False in a simulation, in virtual time, and with
/// relays.
/// \pre `lower` is not the last stage
bool leaves_at_launch(const run_plan& plan, position lower);

} // namespace troupe
