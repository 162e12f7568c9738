// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/plan/run_plan.hpp"
#include "messaging/mail/reports.hpp"

namespace troupe {

/// The loss of a microbatch, as the last stage reports it. \param version of the
/// weights that made it \param ended when its forward did \throws std::runtime_error if
/// it is not finite: training on would poison the weights
mail::microbatch_loss report_of(const run_plan& plan, position where, int microbatch,
                                const loss_sum& loss, int version, nanoseconds ended);

} // namespace troupe
