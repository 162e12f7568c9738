// SPDX-License-Identifier: BSD-3-Clause
// Breadth-first: every rank hosts v stages, and runs all microbatches through one stage
// before the next stage begins.
// Lamy-Poirier, "Breadth-First Pipeline Parallelism", 2023.
//
//   2 ranks, v = 2, 2 microbatches, F = B; 2F0 is of stage 2
//   rank 0  0F0 0F1 2F0 2F1 .   .   2B0 2B1 0B0 0B1
//   rank 1  .   1F0 1F1 3F0 3F1 3B0 3B1 1B0 1B1
//
// Backwards run in increasing order of microbatches too; PyTorch's file of this
// schedule has decreasing order.

#include "schedules/catalog/catalog.hpp"

namespace troupe {

namespace {

slot_formula slots(int v) {
  return [v](op operation, int stage, int k, const shape& dims) {
    const std::int64_t round = stage / (dims.stages / v);
    return (operation == op::forward ? round : 2 * v - 1 - round) * dims.microbatches
           + k;
  };
}

} // namespace

schedule looped_bfs(int v) {
  return {.name = "looped_bfs", .where = placement::looped(v), .order = slots(v)};
}

} // namespace troupe
