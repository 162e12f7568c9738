// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/run/run_callbacks.hpp"
#include "actors/run/run_result.hpp"
#include "plan/run_plan.hpp"
#include "plan/validity.hpp"

namespace troupe {

class distant_run;

/// Runs a plan: makes and wires the actors, waits for the run, and ends all actors. If
/// some work never ends, the run fails, and the run's actors and resources are never
/// freed (is_at_work()).
/// \param remote_part hosts all ranks, in other processes, and serves only this run;
/// outlives the call; null if all ranks are here
/// \pre validation_error(plan).empty()
/// \throws std::bad_alloc if memory is short, although validation_error() found enough
/// \throws no_thread if a thread cannot be started
/// \throws std::runtime_error if GPUs of a group do not join
/// \throws ended_while_joining if `interrupted` is set while GPUs join
/// \pre `await_saved` does not throw: an exception ends the program
/// \throws exceptions of `evaluate`, `save`, `report` and `watch`; an exception of
/// `listener` fails the run
run_result perform(run_plan plan, run_callbacks callbacks = {},
                   distant_run* remote_part = nullptr);

} // namespace troupe
