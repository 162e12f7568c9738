// SPDX-License-Identifier: BSD-3-Clause
#include "plan/replica_rules.hpp"

namespace troupe {

int stops_with(const run_plan& plan, int rank) {
  const bool together =
    updates_are_by(plan, update_by::all_replicas) || plan.exchange->staleness;
  return together ? 0 : plan.data_of(rank);
}

} // namespace troupe
