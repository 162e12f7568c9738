#pragma once

#include "actors/plan/run_plan.hpp"
#include "actors/run/run_callbacks.hpp"
#include "actors/run/run_result.hpp"

#include <cstdint>
#include <functional>
#include <string>

namespace troupe {

/// Why a plan cannot be run, with what is allowed, in one sentence; empty if it can.
/// \param bytes_beside the bytes that the caller of a training takes besides while it
/// is performed; may be empty
std::string
refusal(const run_plan& plan,
        const std::function<std::int64_t(const run_plan&)>& bytes_beside = {});

/// Runs a plan: makes the actors, wires them, waits, and brings everyone home. If
/// somebody is at work that never ends, the run fails, and what it uses stays.
/// \pre refusal(plan).empty()
/// \throws std::bad_alloc if the memory is not there after all, no_thread if threads
/// are not, and what the callbacks throw
run_result perform(run_plan plan, run_callbacks callbacks = {});

/// Whether a run of this process has left somebody at work. Then the process can end
/// only without destroying what is global: by std::_Exit.
bool is_at_work();

} // namespace troupe
