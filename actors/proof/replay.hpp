// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/plan/run_plan.hpp"
#include "actors/updates/shared_parameters.hpp"
#include "messaging/record.hpp"
#include "models/plain_loop.hpp"

namespace troupe {

/// Trains once more without actors: each stage does what the record says it did, in
/// that order, on the versions that it says it read. What comes out must equal the
/// run's result to the bit. \pre plan.work
/// \param accesses to parameters that data replicas update one by one
/// \param witness looks on at updates; may be null
/// \throws std::logic_error if the record cannot have happened
trained replay(const run_plan& plan, const record& ran,
               const shared_history& accesses = {}, update_witness* witness = nullptr);

} // namespace troupe
