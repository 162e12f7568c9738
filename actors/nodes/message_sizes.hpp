// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "messaging/wire/codec.hpp"
#include "plan/run_plan.hpp"

#include <cstdint>
#include <vector>

// Tensor sizes of messages and ranks of receivers, derived from the plan.

namespace troupe {

/// The bytes of each tensor that follows a message: first of wire::buffers_of, then of
/// wire::arrays_of. 0 for the tensor of a call, a message that stands for a direct
/// exchange between GPUs. Sizes follow from the message and from the plan, so sender
/// and receiver compute equal sizes.
/// \pre the positions that the message names exist in the plan
std::vector<std::int64_t> tensor_bytes(const run_plan& plan,
                                       const wire::addressed_message& message);

/// True if the actor with this address takes part in the run.
bool exists(const run_plan& plan, const wire::address& receiver);

/// The rank that hosts an actor; -1 for an actor in the leader's process.
/// \pre exists(plan, receiver)
int rank_of(const run_plan& plan, const wire::address& receiver);

} // namespace troupe
