// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/run/run_result.hpp"

#include <vector>

namespace troupe {

/// The plan under another schedule, with other numbers of stages and steps. The network
/// is cut again, and the run keeps its record.
run_plan plan_of_steps(run_plan plan, const schedule& sch, int stages, int steps);

/// Seconds between the ends of consecutive batches. The first batch, which fills caches
/// and pipelines, has no entry.
std::vector<double> batch_seconds(const run_plan& plan, const record& ran);

/// Performs a plan and returns the mean of batch_seconds().
/// \throws std::runtime_error if the run fails
double mean_seconds_of_a_step(const run_plan& plan);

} // namespace troupe
