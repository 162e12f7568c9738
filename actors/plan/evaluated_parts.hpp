// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/plan/run_plan.hpp"
#include "models/evaluation.hpp"

#include <vector>

namespace troupe {

/// What computes evaluations beside a run: for each stage's layers the processor of the
/// rank that hosts it, in the first replica and shard. Neighbouring stages on one
/// processor are one part.
/// \param here whether ranks are in this process. If not, this CPU computes all.
/// \pre work
std::vector<evaluated_part> evaluated_parts(const run_plan& plan, bool here = true);

} // namespace troupe
