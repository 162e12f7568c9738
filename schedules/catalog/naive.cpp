// SPDX-License-Identifier: BSD-3-Clause
// Naive model parallelism: one microbatch in flight, all other ranks wait.
//
//   slot    0  1  2  3  4  5  6  7  8  9 10 11       3 stages
//   rank 0  F0 .  .  .  .  B0 F1 .  .  .  .  B1 U1
//   rank 1  .  F0 .  .  B0 .  .  F1 .  .  B1 U1
//   rank 2  .  .  F0 B0 .  .  .  .  F1 B1 U1

#include "schedules/catalog/catalog.hpp"

namespace troupe {

namespace {

std::int64_t slot(op operation, int stage, int k, const shape& dims) {
  const auto start = std::int64_t{2} * dims.stages * k;
  return operation == op::forward ? start + stage : start + 2 * dims.stages - 1 - stage;
}

} // namespace

schedule naive() {
  return {.name = "naive", .order = slot};
}

} // namespace troupe
