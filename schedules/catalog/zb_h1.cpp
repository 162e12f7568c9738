// SPDX-License-Identifier: BSD-3-Clause
// ZB-H1: 1F1B with split backwards. The next rank waits only for the input gradient
// (I), so weight gradients (W) fill the idle slots when the pipeline drains. A rank
// holds no more microbatches than the first rank of 1F1B.
// Qi et al., "Zero Bubble Pipeline Parallelism", 2024.
//
//   slot    0  1  2  3  4  5  6  7  8  9 10 11 12 13 14 15 16 17 18
//   rank 0  F0 F1 F2 .  .  I0 W0 F3 I1 W1 F4 I2 W2 I3 W3 I4 W4
//   rank 1  .  F0 F1 .  I0 F2 I1 W0 F3 I2 W1 F4 I3 W2 I4 W3 W4
//   rank 2  .  .  F0 I0 F1 I1 F2 I2 W0 F3 I3 W1 F4 I4 W2 W3 W4

#include "schedules/catalog/catalog.hpp"
#include "schedules/catalog/slots.hpp"

namespace troupe {

// Turns of three slots: a forward, the input gradient of `ahead` microbatches before,
// and the weight gradient of `lag` microbatches before that.
std::int64_t split_slot(op operation, int k, int ahead, int lag) {
  if (operation == op::forward)
    return 3 * (std::int64_t{k} - ahead);
  return operation == op::input_gradient ? std::int64_t{3} * k + 1
                                         : 3 * (std::int64_t{k} + lag) + 2;
}

namespace {

std::int64_t slot(op operation, int stage, int k, const shape& dims) {
  return split_slot(operation, k, dims.stages - 1 - stage, stage);
}

} // namespace

schedule zb_h1() {
  return {.name = "zb-h1", .order = slot, .splits_backward = true};
}

} // namespace troupe
