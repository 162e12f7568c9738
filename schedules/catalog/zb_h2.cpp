// SPDX-License-Identifier: BSD-3-Clause
// ZB-H2: ZB-H1 with twice as many forwards ahead, so that ranks do not wait while the
// pipeline fills either. If F, I and W take equally long, no rank is idle between the
// first and the last action. A rank holds up to 2S-1 microbatches.
// Qi et al., "Zero Bubble Pipeline Parallelism", 2024.
//
//   slot    0  1  2  3  4  5  6  7  8  9 10 11 12 13 14 15 16
//   rank 0  F0 F1 F2 F3 F4 I0 W0 I1 W1 I2 W2 I3 W3 I4 W4
//   rank 1  .  F0 F1 F2 I0 F3 I1 F4 I2 W0 I3 W1 I4 W2 W3 W4
//   rank 2  .  .  F0 I0 F1 I1 F2 I2 F3 I3 F4 I4 W0 W1 W2 W3 W4

#include "schedules/catalog/catalog.hpp"
#include "schedules/catalog/slots.hpp"

namespace troupe {

namespace {

std::int64_t slot(op operation, int stage, int k, const shape& dims) {
  return split_slot(operation, k, 2 * (dims.stages - 1 - stage), 2 * stage);
}

} // namespace

schedule zb_h2() {
  return {.name = "zb-h2", .order = slot, .splits_backward = true};
}

} // namespace troupe
