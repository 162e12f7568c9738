// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/proof/difference.hpp"
#include "actors/proof/published.hpp"
#include "actors/run/company.hpp"

#include <optional>
#include <vector>

namespace troupe {

/// Makes a plan keep all that its proofs need.
void keep_for_proofs(run_plan& plan);

/// Whether a run can be repeated from its record: not where data replicas write the
/// same memory at once.
bool can_be_replayed(const run_plan& plan);

/// The proofs that apply to a run:
/// - plain loop: a flush schedule's losses, gradients and parameters equal those of one
///   plain loop;
/// - replay: its record, done again in a plain loop, gives the same bits;
/// - replicas: all end with the same parameters, or those of one data replica where
///   each has updates of its own;
/// - formula: the record is what the schedule's paper says, which neither the run nor
///   its record has been asked for; and a loop that goes by the paper gives the same
///   bits, where versions do not follow timing.
///
/// Equal is equal to the bit, but where the run sums in another order than one device:
/// there loops follow it step by step (step_judge). Where data replicas have updates of
/// their own, their order in each share of the parameters is replayed, and held against
/// the bound on staleness.
///
/// \param by the rule that was asked for; absent where none is published
/// \pre keep_for_proofs(plan), and the run has finished; can_be_replayed(plan)
std::vector<proof> prove(const run_plan& plan, const run_result& result,
                         const std::optional<published::rule>& by);

/// The same by the rule of the plan's schedule as it is.
std::vector<proof> prove(const run_plan& plan, const run_result& result);

} // namespace troupe
