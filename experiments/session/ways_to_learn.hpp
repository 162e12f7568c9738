// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "experiments/options/options.hpp"

namespace troupe {

/// Makes the number-th of many runs learn: they take SGD and AdamW, momentum, decay,
/// clipping and rates that change by turns. Schedules whose updates have no norm but
/// their stage's clip by that. Warm-ups end within a batch.
void learn(typed_options& run, std::size_t number);

} // namespace troupe
