// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "messaging/wire/codec.hpp"
#include "plan/run_plan.hpp"

// Receivers of messages of other processes, derived from the plan.

namespace troupe {

/// True if the actor with this address takes part in the run.
bool exists(const run_plan& plan, const wire::address& receiver);

/// The rank that hosts an actor; -1 for an actor in the leader's process.
/// \pre exists(plan, receiver)
int rank_of(const run_plan& plan, const wire::address& receiver);

} // namespace troupe
