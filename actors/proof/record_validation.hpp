// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/proof/published.hpp"
#include "messaging/record.hpp"

#include <optional>
#include <string>

namespace troupe {

struct run_plan;

/// Returns the published rule of a schedule, derived from the schedule itself and not
/// from a user's options. Absent if the schedule has no published rule, or has more
/// than two directions.
std::optional<published::rule> rule_of(const schedule& sch);

/// Checks a run's record against the published formulas. Returns the first deviation as
/// a sentence, or an empty string if there is none. In every stage, each microbatch
/// must have a forward and a backward. Except with AMPNet, both must run in the order
/// of microbatches, and the rank's actions in the order of published::slot(). The check
/// covers the version that each pass reads, and each update's version, gradients and
/// staleness. The numbers of versions alive and of activations held are checked too. If
/// the run recomputes, each backward must directly follow its recomputation.
std::string first_wrong_entry(const run_plan& plan, const published::rule& paper_rule,
                              const record& ran);

} // namespace troupe
