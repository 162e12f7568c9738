// SPDX-License-Identifier: BSD-3-Clause
#include "plan/stage_rules.hpp"

#include "plan/replica_rules.hpp"
#include "plan/sharding.hpp"
#include "plan/stage_experts.hpp"

namespace troupe {

bool rounds_older_versions(const run_plan& plan) {
  return plan.work && plan.work->whole.options.stored == precision::bf16
         && !shares_out(plan, shared_out::parameters);
}

bool keeps_packed_weights(const run_plan& plan) {
  return rounds_older_versions(plan)
         && update_size(plan.sch, plan.dims) > plan.directions();
}

int snapshots_of(const run_plan& plan, position p) {
  if (plan.copies.evaluate_every == 0 || !in_snapshot(plan, p))
    return 0;
  return 2 + plan.bounds_of({p.direction, 0}).stashes / plan.dims.microbatches;
}

bool passes_meet(const run_plan& plan, int stage) {
  return plan.mesh[axis::tensor] > 1 || shares_out(plan, shared_out::gradients)
         || !experts_of(plan, stage).empty();
}

bool leaves_at_launch(const run_plan& plan, position lower) {
  auto upper = lower;
  ++upper.stage;
  if (!plan.work || plan.machine.clock != clock_kind::real || plan.has_relays
      || plan.sch.local_rule())
    return false;
  const auto waits = [&](position p) {
    return plan.machine.processor_of(plan.rank_of(p)).is_gpu()
           && !passes_meet(plan, p.stage);
  };
  return waits(lower) && waits(upper);
}

} // namespace troupe
