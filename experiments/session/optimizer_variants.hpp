// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "experiments/options/options.hpp"

namespace troupe {

/// Sets the optimizer of run `number`, from 0, in a list of many runs: SGD and AdamW
/// with momentum, decay, clipping and changing rates, in rotation. If the optimizer
/// clips, schedules whose updates see only the norm of one stage clip by that norm. One
/// of the optimizers clips all schedules by the norm of a stage, unless a matrix is
/// tied. Warm-ups end in the second batch.
/// \pre run.data.batch has a value
void set_optimizer_variant(typed_options& run, std::size_t number);

} // namespace troupe
