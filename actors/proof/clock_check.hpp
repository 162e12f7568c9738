// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/plan/run_plan.hpp"
#include "actors/proof/published.hpp"
#include "actors/run/company.hpp"

#include <string>

namespace troupe {

// Where the times of a run leave what is published, in words; empty: nowhere.

/// Whether what had arrived can be told from what was recorded: in virtual time, as
/// long as no message waits for another at a port.
bool choices_can_be_judged(const run_plan& plan);

/// AMPNet's rule: choice by choice if they can be judged, and what actions take too;
/// else its bounds. \param doubt by so much clocks of ranks may be apart
std::string first_wrong_choice(const run_plan& plan, const published::rule& by,
                               const record& ran, nanoseconds doubt = 0);

/// The makespan and the idle time of every rank, wherever a paper gives them: in
/// virtual time, where all forwards take as long as one another, and all backwards, and
/// nothing else takes any time.
std::string first_wrong_time(const run_plan& plan, const published::rule& by,
                             const measures& ran);

} // namespace troupe
