// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/updates/shared_parameters.hpp"
#include "messaging/record.hpp"
#include "models/plain_loop.hpp"
#include "plan/run_plan.hpp"

namespace troupe {

/// Repeats a recorded training without actors. Each stage computes its recorded actions
/// in the recorded order, on the recorded weight versions. Recomputations are skipped.
/// The result must equal the run's to the bit, unless sums_elsewhere(plan).
/// \pre plan.work, and the record has all actions of the run
/// \param accesses order of accesses to parameters that data replicas update one by
/// one; may be empty if all data replicas update together
/// \param witness is called at each update that all data replicas make together, and
/// may replace values; may be null
/// \throws std::logic_error if no run can have made the record
trained replay(const run_plan& plan, const record& ran,
               const shared_history& accesses = {}, update_witness* witness = nullptr);

} // namespace troupe
