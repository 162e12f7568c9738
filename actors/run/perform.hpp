// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/plan/run_plan.hpp"
#include "actors/run/memory_check.hpp"
#include "actors/run/run_callbacks.hpp"
#include "actors/run/run_result.hpp"

#include <optional>
#include <string>
#include <vector>

namespace troupe {

/// Returns one sentence if a plan cannot be run: the reason, and the values that are
/// allowed or the memory that is free. Returns an empty text if the plan can be run.
/// \param count_caller_bytes returns the bytes that the caller of a training allocates
/// in addition during the run; may be empty. Called only if the plan has a training
/// \param local_ranks the ranks that use the memory and the GPUs of this machine;
/// absent if all ranks do
std::string validation_error(const run_plan& plan,
                             const caller_bytes_counter& count_caller_bytes = {},
                             const std::optional<std::vector<int>>& local_ranks = {});

class distant_run;

/// Runs a plan: makes and wires the actors, waits for the run, and ends all actors. If
/// some work never ends, the run fails, and the run's actors and resources are never
/// freed (is_at_work()).
/// \param remote_part hosts all ranks, in other processes, and serves only this run;
/// null if all ranks are here
/// \pre validation_error(plan).empty()
/// \throws std::bad_alloc if memory is short after all
/// \throws no_thread if a thread cannot be started
/// \throws std::runtime_error if GPUs of a group do not join
/// \throws ended_while_joining if `interrupted` is set while GPUs join
/// \throws exceptions of the callbacks
run_result perform(run_plan plan, run_callbacks callbacks = {},
                   distant_run* remote_part = nullptr);

} // namespace troupe
