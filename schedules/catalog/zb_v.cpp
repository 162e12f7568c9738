// SPDX-License-Identifier: BSD-3-Clause
// ZB-V: stages run along the ranks and back, in a V, and backwards are split. If F, I
// and W take equally long, no rank is idle between the first and the last action. Every
// rank holds as many stashes as the first rank of 1F1B.
// Qi et al., "Zero Bubble Pipeline Parallelism", 2024. PyTorch's ScheduleZBVZeroBubble
// has the same order.
//
//   2 ranks, 3 microbatches; 3F0 is of stage 3
//   rank 0  0F0 0F1 0F2 3F0 3I0 3W0 3F1 3I1 3W1 0I0 0W0 3F2 3I2 3W2 0I1 0W1 0I2 0W2
//   rank 1  .   1F0 2F0 1F1 2F1 2I0 2W0 1F2 1I0 1W0 2F2 2I1 2W1 1I1 2I2 1I2 1W1 2W2 ..

#include "schedules/catalog/catalog.hpp"
#include "schedules/catalog/writer.hpp"
#include "schedules/program.hpp"

#include <algorithm>

namespace troupe {

namespace {

constexpr int outward = 0, back = 1;

// The pattern needs 2P-1 microbatches to fill. With fewer, actions of missing
// microbatches are left out.
std::vector<action> batch_of(int rank, const shape& dims) {
  const auto where = placement::waves(1);
  const int ranks = dims.stages / 2, remaining = ranks - 1 - rank;
  const int microbatches = std::max(dims.microbatches, 2 * ranks - 1);
  batch_writer to{where, dims, {0, rank}, {0, dims.stages - 1 - rank}};
  const auto split = [&](int which) {
    to.input_gradient(which);
    to.weight_gradient(which);
  };
  for (int i = 0; i < 2 * remaining + 1; ++i)
    to.forward(outward);
  for (int i = 0; i < rank; ++i) {
    to.forward(back);
    to.forward(outward);
  }
  for (int i = 0; i < remaining + 1; ++i) {
    to.forward(back);
    split(back);
  }
  while (to.forwarded(back) < microbatches) {
    if (to.forwarded(outward) < microbatches)
      to.forward(outward);
    split(outward);
    to.forward(back);
    split(back);
  }
  for (int i = 0; i < rank; ++i) {
    to.input_gradient(outward);
    to.input_gradient(back);
  }
  for (int i = 0; i < remaining + 1; ++i)
    split(outward);
  for (const int which : {back, outward})
    while (to.owes_weight_gradients(which))
      to.weight_gradient(which);
  return std::move(to).batch();
}

} // namespace

schedule zb_v() {
  return {
    .name = "zb-v", .where = placement::waves(1), .order = batch_by_batch(batch_of)};
}

} // namespace troupe
