// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "experiments/options/options.hpp"

namespace troupe {

/// Sets the optimizer of run `number` in a list of many runs: SGD and AdamW with
/// momentum, decay, clipping and changing rates, in rotation. Schedules without a norm
/// of the network clip by the norm of a stage. Warm-ups end within a batch.
/// \pre run.data.batch has a value
void set_optimizer_variant(typed_options& run, std::size_t number);

} // namespace troupe
