// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/run/perform.hpp"
#include "messaging/record.hpp"

#include <string>

namespace troupe {

struct run_plan;

// Checks of updates with one data replica's gradients each (parameter servers,
// Hogwild), without computing the updates again. Each check returns the run's first
// breach of the exchange's rule as a sentence, or an empty string if there is none. The
// plan must have an exchange, and the run must have kept the record.

/// Checks that each data replica updated and read every share as often as the replica's
/// stage recorded updates. Without servers only share 0 is compared with the record, as
/// share 0 then has the accesses to all parameters. The recorded accesses must also
/// keep the exchange's bound on staleness, if there is one. No server may answer a
/// replica that is further ahead of the slowest replica than the bound.
std::string first_wrong_access(const run_plan& plan, const run_result& result);

/// Checks, by the ranks' own clocks, that no data replica got an answer too early. The
/// answer to update n must not come before every replica could request update n -
/// bound. This check does not depend on the servers' records. Empty for an exchange
/// without a bound.
std::string first_early_answer(const run_plan& plan, const record& ran);

} // namespace troupe
