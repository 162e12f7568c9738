// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/plan/run_plan.hpp"
#include "actors/run/company.hpp"

#include <string>

namespace troupe {

// What can be said of updates that are of one data replica each, without doing them
// again. Each says where a run leaves the exchange's rule, in words; empty: nowhere.

/// Whether every share was updated and read once by each update of each data replica.
/// Servers' own records also say that nobody was answered further ahead of the slowest
/// replica than the bound.
std::string first_wrong_access(const run_plan& plan, const run_result& result);

/// Whether an answer came before the slowest data replica was near enough, by the
/// ranks' own clocks: this does not rest on what servers say.
std::string first_early_answer(const run_plan& plan, const record& ran);

} // namespace troupe
