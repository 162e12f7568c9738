#pragma once

#include "actors/company.hpp"

namespace troupe {

/// Whether a real run has a thread, and a core under it, for each rank.
bool has_thread_a_rank(const run_plan& plan);

/// Whether a run's own times mean little: a real one without a core for each rank.
bool needs_modelled_times(const run_plan& plan);

/// Moves the actions of a real run to where they would have been with one device a
/// rank: their order and lengths stay. Sets the times of result.sums accordingly; what
/// does not depend on time stays that of the run.
void model_times(const run_plan& plan, run_result& result);

} // namespace troupe
