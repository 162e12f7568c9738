// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/run/perform.hpp"
#include "plan/run_plan.hpp"

#include <string>

namespace troupe {

// Checks of updates with one data replica's gradients each (parameter servers,
// Hogwild), without computing the updates again. Each check returns the run's first
// breach of the exchange's rule as a sentence, or an empty string if there is none.

/// Checks that each data replica updated and read every share as often as the replica's
/// stage recorded updates. Without servers, share 0 has the accesses to all shares. The
/// recorded accesses must also keep the exchange's bound on staleness, if there is one.
/// No server may answer a replica that is further ahead of the slowest replica than the
/// bound.
std::string first_wrong_access(const run_plan& plan, const run_result& result);

/// Checks, by the ranks' own clocks, that no answer came before the slowest data
/// replica was within the bound. This check does not depend on the servers' records.
/// Empty for an exchange without a bound.
std::string first_early_answer(const run_plan& plan, const record& ran);

} // namespace troupe
