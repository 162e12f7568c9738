// SPDX-License-Identifier: BSD-3-Clause
#pragma once

namespace troupe {

struct run_plan;

/// True if a run in real time would have a thread, and a core of this machine under
/// that thread, for each rank and for each parameter server. Does not look at the
/// plan's clock.
bool has_thread_a_rank(const run_plan& plan);

/// True for a run in real time without has_thread_a_rank(), if
/// modelled_times::can_model(). The measured times of such a run mean little, and other
/// times can be modelled.
/// \param is_remote true for a run in several processes, which counts as a run without
/// enough cores: the cores of other processes are unknown
bool needs_modelled_times(const run_plan& plan, bool is_remote = false);

} // namespace troupe
