// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/run/run_result.hpp"

#include <vector>

namespace troupe {

/// Returns the plan with another schedule and other numbers of stages and steps. The
/// network is cut into stages of nearly equal operations, and `keep_record` is set.
/// \pre the plan has a training, and the network can be cut into `stages` stages
run_plan plan_of_steps(run_plan plan, const schedule& sch, int stages, int steps);

/// Seconds between the ends of consecutive batches. The first batch, which fills caches
/// and pipelines, has no entry.
/// \param ran all actions of the run
std::vector<double> batch_seconds(const run_plan& plan, const record& ran);

/// Performs a plan and returns the mean of batch_seconds(); 0 for a plan of one step.
/// \pre plan.keep_record
/// \throws std::runtime_error if the run fails
double mean_seconds_of_a_step(const run_plan& plan);

} // namespace troupe
