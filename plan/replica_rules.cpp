// SPDX-License-Identifier: BSD-3-Clause
#include "plan/replica_rules.hpp"

namespace troupe {

int device_count(const run_plan& plan, const std::vector<int>& ranks) {
  auto result = static_cast<int>(ranks.size());
  if (updates_are_by(plan, update_by::servers))
    for (const int rank : ranks)
      for (const auto& where : plan.hosted_by(rank))
        result += where.direction == 0;
  return result;
}

int stops_with(const run_plan& plan, int rank) {
  const bool together =
    updates_are_by(plan, update_by::all_replicas) || plan.exchange->staleness;
  return together ? 0 : plan.data_of(rank);
}

} // namespace troupe
