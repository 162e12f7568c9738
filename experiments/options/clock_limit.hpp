// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "experiments/options/cost_options.hpp"
#include "plan/run_plan.hpp"

#include <string>

namespace troupe {

/// One sentence if a run could last longer than the virtual clock, which counts
/// nanoseconds in 63 bits. The test uses an upper bound of the duration. Empty if the
/// clock suffices, or if the plan has no microbatches, which another check refuses.
std::string outlasts_clock(const cost_options& costs, const run_plan& plan);

} // namespace troupe
