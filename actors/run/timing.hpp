// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/plan/run_plan.hpp"

namespace troupe {

/// True if a real run has a thread, and a core under that thread, for each rank and for
/// each parameter server.
bool has_thread_a_rank(const run_plan& plan);

/// True if a run's measured times mean little, and other times can be modelled. True
/// for a real run without a core for each rank, if the events that actions wait for are
/// known. The cores of other processes are unknown, so a run in several processes
/// counts as a run without.
bool needs_modelled_times(const run_plan& plan, bool is_remote = false);

} // namespace troupe
