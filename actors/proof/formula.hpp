// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/plan/run_plan.hpp"
#include "actors/proof/difference.hpp"
#include "actors/proof/published.hpp"
#include "actors/run/company.hpp"

#include <optional>

namespace troupe {

/// The plain loop that a run must equal: as a flush schedule's definition it reads the
/// newest versions.
plain_plan plain_of(const run_plan& plan);

/// The loop of a published formula: each microbatch reads the version that the formula
/// names, and updates cover what it says.
plain_plan plain_of(const run_plan& plan, const published::rule& by);

/// Where the record leaves the published formula, in words; empty: nowhere.
std::string first_wrong(const run_plan& plan, const published::rule& by,
                        const run_result& result);

} // namespace troupe
