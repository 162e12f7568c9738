// SPDX-License-Identifier: BSD-3-Clause
// AMPNet: a local rule without a program. A rank runs the inputs that have arrived,
// backwards first, on the newest weights. Each stage updates alone, as soon as enough
// gradients are summed.
// Gaunt et al., "AMPNet: Asynchronous Model-Parallel Training for Dynamic Neural
// Networks", 2017.
//
//   time    0  1  2  3  4  5  6  7  8  9        2 stages, F=1 B=1, max_active_keys=2
//   rank 0  F0 F1 .  B0 F2 B1 F3 B2 F4 B3
//   rank 1  .  F0 B0 F1 B1 F2 B2 F3 B3 F4

#include "schedules/catalog/catalog.hpp"

namespace troupe {

schedule ampnet(int max_active_keys, int min_update_frequency) {
  return {
    .name = "ampnet",
    .order = backward_first{max_active_keys},
    .weights = weights::latest,
    .streams = true,
    .update_every = min_update_frequency,
  };
}

} // namespace troupe
