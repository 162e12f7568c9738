// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/proof/published.hpp"
#include "actors/run/perform.hpp"
#include "kernels/virtual_clock.hpp"
#include "messaging/record.hpp"

#include <string>

namespace troupe {

struct run_plan;

// Checks of a run's times against published rules and formulas. Each check returns the
// first deviation as a sentence, or an empty string if there is none.

/// True in virtual time if no link limits the bandwidth, as no message then waits for
/// another at a port. The arrival times of messages follow from the record, and choices
/// can be checked.
bool choices_can_be_judged(const run_plan& plan);

/// Checks a record against AMPNet's rule. If choices_can_be_judged(plan), the check
/// covers each choice and, in runs without servers and experts, each duration.
/// Otherwise the check covers counts, bounds and the order of microbatches.
/// \param doubt largest difference between the clocks of two ranks, in nanoseconds;
/// unused if choices_can_be_judged(plan)
/// \pre `paper_rule` is AMPNet's
std::string first_wrong_choice(const run_plan& plan, const published::rule& paper_rule,
                               const record& ran, nanoseconds doubt = 0);

/// Checks the makespan and every rank's idle time, wherever published::time_of_batch()
/// gives both. Papers give both for runs in which all actions of a kind take one time,
/// and updates, messages and sums take no time. A pair of a forward and a backward
/// takes the sum of both times. Other runs, and runs in real time, are not checked: the
/// result is empty. Also not checked are runs with tensor shards, experts, ZeRO 2 or 3,
/// servers, Hogwild, a tied matrix, uneven microbatches or recomputation ahead of time.
std::string first_wrong_time(const run_plan& plan, const published::rule& paper_rule,
                             const measures& ran);

} // namespace troupe
