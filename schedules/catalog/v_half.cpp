// SPDX-License-Identifier: BSD-3-Clause
// V-Half: like V-Min, but forwards and input gradients that move towards rank 0 take
// two slots from rank to rank. Ranks hold half of the stashes of 1F1B's first rank,
// with fewer bubbles than V-Min.
// Qi et al., "Pipeline Parallelism with Controllable Memory", 2024.
//
//   the slots of one microbatch; the next one's come six slots later      3 ranks
//   rank 0  0F .  .  .  .  .  .  5F 5I ...
//   rank 1  .  1F .  .  .  4F .  .  .  4I ...
//   rank 2  .  .  2F 3F .  .  .  .  .  .  3I ...

#include "schedules/catalog/catalog.hpp"
#include "schedules/catalog/slots.hpp"

namespace troupe {

namespace {

// Forwards and input gradients start at slots where no two collide on any rank.
std::int64_t slot(op operation, int stage, int k, const shape& dims) {
  const std::int64_t ranks = dims.stages / 2;
  const bool back = stage >= ranks, even = ranks % 2 == 0;
  const std::int64_t rank = back ? dims.stages - 1 - stage : stage,
                     to_turn = ranks - 1 - rank;
  return v_slot({.forward_there = rank,
                 .forward_back = (even ? ranks + 3 : ranks) + 2 * to_turn,
                 .gradient_there = (even ? 4 * ranks + 6 : 4 * ranks) + 2 * to_turn,
                 .gradient_back = (even ? 3 * ranks + 2 : 3 * ranks - 1) + rank},
                operation, back, k);
}

} // namespace

schedule v_half() {
  return {.name = "v-half",
          .where = placement::waves(1),
          .order = slot,
          .splits_backward = true};
}

} // namespace troupe
