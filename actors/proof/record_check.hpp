// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/plan/run_plan.hpp"
#include "actors/proof/published.hpp"
#include "messaging/record.hpp"

#include <optional>
#include <string>

namespace troupe {

/// The published rule of a schedule as it is, whatever a user called for; absent where
/// none is published.
std::optional<published::rule> rule_of(const schedule& sch);

/// Where the books that a run kept of itself leave the published formulas, in words;
/// empty: nowhere. Judged are on every rank that each microbatch has its forward and
/// its backward, in their order; which version each read and each update made, of which
/// gradients, and how stale; and how many versions and activations were held.
std::string first_wrong_entry(const run_plan& plan, const published::rule& by,
                              const record& ran);

} // namespace troupe
