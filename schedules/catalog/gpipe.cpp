// SPDX-License-Identifier: BSD-3-Clause
// GPipe: all forwards, then all backwards.
// Huang et al., "GPipe: Efficient Training of Giant Neural Networks", 2019.
//
//   slot    0  1  2  3  4  5  6  7  8  9             3 stages
//   rank 0  F0 F1 F2 .  .  .  .  B0 B1 B2 U2
//   rank 1  .  F0 F1 F2 .  .  B0 B1 B2 U2
//   rank 2  .  .  F0 F1 F2 B0 B1 B2 U2

#include "schedules/catalog/catalog.hpp"

namespace troupe {

namespace {

std::int64_t slot(op operation, int stage, int k, const shape& dims) {
  return operation == op::forward
           ? stage + k
           : dims.microbatches + 2 * (dims.stages - 1) - stage + k;
}

} // namespace

schedule gpipe() {
  return {.name = "gpipe", .order = slot};
}

} // namespace troupe
