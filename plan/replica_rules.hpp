// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "messaging/position.hpp"
#include "messaging/replica_exchange.hpp"
#include "plan/run_plan.hpp"

#include <vector>

// Which data replicas update and exchange the parameters, gradients and optimizer state
// of a plan, and when.

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

/// Number of devices of some ranks that compute at the same time: one per rank, and one
/// per parameter server. A parameter server of a stage is on the rank of the stage's
/// first direction.
int device_count(const run_plan& plan, const std::vector<int>& ranks);

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

/// Group number of a rank. Ranks of one group end after the same update when a run is
/// interrupted. All ranks form group 0. If no data replica waits for another, the
/// ranks of each data replica form a group instead, with the replica's index.
int stops_with(const run_plan& plan, int rank);

} // namespace troupe
