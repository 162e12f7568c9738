// SPDX-License-Identifier: BSD-3-Clause
// 1F1B with flush: one forward, one backward, one weight version.
// Narayanan et al., "Memory-Efficient Pipeline-Parallel DNN Training", 2021.
//
//   slot    0  1  2  3  4  5  6  7  8  9 10 11 12 13     4 stages
//   rank 0  F0 .  F1 .  F2 .  F3 B0 .  B1 .  B2 .  B3 U3
//   rank 1  .  F0 .  F1 .  F2 B0 F3 B1 .  B2 .  B3 U3
//   rank 2  .  .  F0 .  F1 B0 F2 B1 F3 B2 .  B3 U3
//   rank 3  .  .  .  F0 B0 F1 B1 F2 B2 F3 B3 U3

#include "schedules/catalog/catalog.hpp"
#include "schedules/catalog/slots.hpp"

namespace troupe {

// A microbatch enters every second slot; the backward comes back through the gaps.
std::int64_t one_f_one_b_slot(op operation, int stage, int k, const shape& dims) {
  const auto entry = std::int64_t{2} * k;
  return operation == op::forward ? entry + stage : entry + 2 * dims.stages - 1 - stage;
}

schedule one_f_one_b() {
  return {.name = "1f1b", .order = one_f_one_b_slot};
}

} // namespace troupe
