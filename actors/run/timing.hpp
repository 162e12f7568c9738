// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/plan/run_plan.hpp"

namespace troupe {

/// Whether a real run has a thread, and a core under it, for each rank, and for each
/// parameter server.
bool has_thread_a_rank(const run_plan& plan);

/// Whether a run's own times mean little, and others can be modelled: a real one
/// without a core for each rank, of which it is known what its actions wait for. Of
/// runs that are played elsewhere nobody knows their cores.
bool needs_modelled_times(const run_plan& plan, bool elsewhere = false);

} // namespace troupe
