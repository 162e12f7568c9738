// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/plan/run_plan.hpp"
#include "actors/run/room.hpp"
#include "actors/run/run_callbacks.hpp"
#include "actors/run/run_result.hpp"

#include <optional>
#include <string>
#include <vector>

namespace troupe {

/// Why a plan cannot be run, with what is allowed, in one sentence; empty if it can.
/// \param beside counts what the caller of a training takes besides while it is
/// performed; may be empty
/// \param here the ranks whose memory is of this machine; absent: all
std::string refusal(const run_plan& plan, const counts_beside& beside = {},
                    const std::optional<std::vector<int>>& here = {});

class distant_run;

/// Runs a plan: makes the actors, wires them, waits, and brings everyone home. If
/// somebody is at work that never ends, the run fails, and what it uses stays.
/// \param others plays all ranks in other processes; null: they are here
/// \pre refusal(plan).empty()
/// \throws std::bad_alloc if the memory is not there after all, no_thread if threads
/// are not, and what the callbacks throw
run_result perform(run_plan plan, run_callbacks callbacks = {},
                   distant_run* others = nullptr);

} // namespace troupe
