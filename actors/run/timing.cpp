// SPDX-License-Identifier: BSD-3-Clause
#include "actors/run/timing.hpp"

#include "actors/run/modelled_times.hpp"
#include "plan/replica_rules.hpp"

#include <algorithm>
#include <thread>

namespace troupe {

bool has_thread_a_rank(const run_plan& plan) {
  const int cores = static_cast<int>(std::thread::hardware_concurrency());
  return std::min(plan.machine.threads, cores) >= device_count(plan, all_ranks(plan));
}

bool needs_modelled_times(const run_plan& plan, bool is_remote) {
  return plan.machine.clock == clock_kind::real
         && (is_remote || !has_thread_a_rank(plan)) && modelled_times::can_model(plan);
}

} // namespace troupe
