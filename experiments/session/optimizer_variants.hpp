// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "experiments/options/options.hpp"

namespace troupe {

/// Sets `run.optimizer` to one of seven variants, in rotation by `number` from 0. The
/// variants are SGD, AdamW and NAdam with different momentum, decay, clipping and
/// rates. A variant that clips appends clip=stage to the names of schedules whose
/// updates see only one stage's norm. One variant appends clip=stage to all names,
/// unless a matrix is tied. Warm-ups end in the second batch.
/// \pre run.data.batch has a value, and no earlier call has received this `run`
void set_optimizer_variant(typed_options& run, std::size_t number);

} // namespace troupe
