// SPDX-License-Identifier: BSD-3-Clause
// Interleaved 1F1B: every rank hosts v stages. A microbatch passes the ranks v times,
// and the pipeline fills and drains in a v-th of the time. Microbatches run in groups
// of as many as there are ranks.
// Narayanan et al., "Efficient Large-Scale Language Model Training on GPU Clusters
// Using Megatron-LM", 2021. PyTorch's ScheduleInterleaved1F1B has the same order.
//
//   2 ranks, v = 2, 2 microbatches, F = B; 2F0 is of stage 2
//   rank 0  0F0 0F1 2F0 2F1 .   2B0 .   2B1 0B0 0B1
//   rank 1  .   1F0 1F1 3F0 3B0 3F1 3B1 1B0 1B1

#include "schedules/catalog/catalog.hpp"

namespace troupe {

namespace {

// A rank's i-th forward is at slot i during warmup, then at every second slot; the i-th
// backward comes in between. The last group may be short.
slot_formula slots(int v) {
  return [v](op operation, int stage, int k, const shape& dims) {
    const std::int64_t ranks = dims.stages / v, rank = stage % ranks;
    const std::int64_t round = stage / ranks,
                       warm_up = 2 * (ranks - rank - 1) + (v - 1) * ranks;
    const auto index = [&](std::int64_t turn) {
      return (k / ranks * v + turn) * ranks + k % ranks;
    };
    if (operation == op::backward)
      return warm_up + 2 * index(v - 1 - round) + 1;
    const auto i = index(round);
    return i < warm_up ? i : 2 * i - warm_up;
  };
}

} // namespace

schedule interleaved(int v) {
  return {.name = "interleaved", .where = placement::looped(v), .order = slots(v)};
}

} // namespace troupe
