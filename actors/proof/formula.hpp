// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/proof/difference.hpp"
#include "actors/proof/published.hpp"
#include "actors/run/perform.hpp"
#include "plan/run_plan.hpp"

#include <optional>

namespace troupe {

/// Returns the plain loop that a run of a flush schedule must equal. Each microbatch
/// reads the newest version, by the definition of a flush schedule.
/// \param plan outlives the result, which refers to the plan
/// \pre plan.work
plain_plan plain_of(const run_plan& plan);

/// Returns the loop of a published formula: the formula gives the version that each
/// microbatch reads, and the microbatches that each update covers.
/// \param plan outlives the result, which refers to the plan
/// \pre plan.work, and published::version_read() has a formula for the rule
plain_plan plain_of(const run_plan& plan, const published::rule& paper_rule);

/// Returns the run's first deviation from the published formula as a sentence, or an
/// empty string if there is none. The check covers the record and its times. If each
/// data replica has its own updates (servers, Hogwild), the check also covers the
/// accesses to shared parameters.
/// \pre the run has kept the record
std::string first_wrong(const run_plan& plan, const published::rule& paper_rule,
                        const run_result& result);

} // namespace troupe
