// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/plan/run_plan.hpp"
#include "messaging/wire/codec.hpp"

#include <cstdint>
#include <vector>

namespace troupe {

/// The bytes of each tensor that travels behind a mail: one for each of
/// wire::buffers_of, then of wire::arrays_of. What a mail says of its size, and what
/// the plan says, so both sides find the same.
std::vector<std::int64_t> tensor_bytes(const run_plan& plan,
                                       const wire::addressed_mail& of);

/// Whether such an actor takes part in a run.
bool exists(const run_plan& plan, const wire::address& of);

/// The rank that an actor stands on; -1: with who leads the run.
int rank_of(const run_plan& plan, const wire::address& of);

} // namespace troupe
