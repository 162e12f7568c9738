// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/plan/run_plan.hpp"

namespace troupe {

/// Whether a real run has a thread, and a core under that thread, for each rank and for
/// each parameter server.
bool has_thread_a_rank(const run_plan& plan);

/// Whether a run's own times mean little, and other times can be modelled. So it is for
/// a real run without a core for each rank, where the events that actions wait for are
/// known. The cores of a run in other processes are unknown, so such a run counts as
/// one without.
bool needs_modelled_times(const run_plan& plan, bool is_remote = false);

} // namespace troupe
