// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "models/evaluation.hpp"
#include "plan/memory_check.hpp"
#include "plan/run_plan.hpp"

#include <vector>

namespace troupe {

/// Returns the parts of the network that an evaluation during a run computes, each with
/// its processor. The layers of a stage run on the processor of the stage's rank in
/// data replica 0, direction 0 and tensor shard 0. Neighbouring stages on one processor
/// form one part.
/// \param has_local_ranks true if the ranks are in this process; if false, this CPU
/// computes all layers
/// \pre the plan has a training (`plan.work`)
std::vector<evaluated_part> evaluated_parts(const run_plan& plan,
                                            bool has_local_ranks = true);

/// Bytes that an evaluation needs in addition to a training.
/// \param has_local_ranks as evaluated_parts() takes it
/// \pre the plan has a training (`plan.work`)
caller_bytes bytes_of_evaluation(const run_plan& plan, bool has_local_ranks);

} // namespace troupe
