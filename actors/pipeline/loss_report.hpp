// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "messaging/mail/reports.hpp"
#include "plan/run_plan.hpp"

namespace troupe {

/// Returns the report of a microbatch's loss that the last stage sends to the recorder.
/// In a plan without a training a sample has one prediction.
/// \param where position of the last stage
/// \param microbatch index in the data replica's run; the report has the index over all
/// data replicas
/// \param version of the weights that made the loss, for the error message
/// \param ended end of the microbatch's forward, in nanoseconds on the run's clock
/// \throws std::runtime_error if the loss is not finite: further updates would spoil
/// the weights
mail::microbatch_loss report_of(const run_plan& plan, position where, int microbatch,
                                const loss_sum& loss, int version, nanoseconds ended);

} // namespace troupe
