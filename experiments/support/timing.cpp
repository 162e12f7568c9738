#include "experiments/support/timing.hpp"

#include "actors/modelled_times.hpp"

#include <algorithm>
#include <thread>

namespace troupe {

bool needs_modelled_times(const run_plan& plan) {
  const int cores = static_cast<int>(std::thread::hardware_concurrency());
  return plan.clock == clock_kind::real && std::min(plan.threads, cores) < plan.ranks()
         && modelled_times::can_model(plan);
}

} // namespace troupe
