// SPDX-License-Identifier: BSD-3-Clause
// V-Min: stages run along the ranks and back, in a V, and each action of a microbatch
// comes as soon as possible. A rank whose first stage waits long for a gradient has a
// second stage that waits shortly. All ranks hold a third of the stashes of 1F1B's
// first rank.
// Qi et al., "Pipeline Parallelism with Controllable Memory", 2024.
//
//   the slots of one microbatch; the next one's come six slots later      2 ranks
//   slot    0  1  2  3  4  5  6  7  8  9 10
//   rank 0  0F .  .  3F 3I 3W .  0I 0W
//   rank 1  .  1F 2F .  .  2I 1I .  2W .  1W

#include "schedules/catalog/catalog.hpp"
#include "schedules/catalog/slots.hpp"

#include <array>

namespace troupe {

// The weight gradient of the stage on the way back gets the first free slot, because
// the input gradient there comes first.
std::int64_t v_slot(const v_pattern& pattern, op operation, bool back, int k) {
  constexpr std::int64_t turn = 6;
  const auto begin = turn * k;
  if (operation == op::forward)
    return begin + (back ? pattern.forward_back : pattern.forward_there);
  if (operation == op::input_gradient)
    return begin + (back ? pattern.gradient_back : pattern.gradient_there);
  std::array<bool, turn> occupied{};
  for (const auto slot : {pattern.forward_there, pattern.forward_back,
                          pattern.gradient_back, pattern.gradient_there})
    occupied[static_cast<std::size_t>(slot % turn)] = true;
  const auto free_from = [&](std::int64_t slot) {
    while (occupied[static_cast<std::size_t>(slot % turn)])
      ++slot;
    occupied[static_cast<std::size_t>(slot % turn)] = true;
    return slot;
  };
  const auto of_back = free_from(pattern.gradient_back + 1);
  return begin + (back ? of_back : free_from(pattern.gradient_there + 1));
}

namespace {

// One slot from rank to rank, everywhere. Input gradients begin two slots later where
// forwards and input gradients would collide.
std::int64_t slot(op operation, int stage, int k, const shape& dims) {
  const std::int64_t ranks = dims.stages / 2;
  const bool back = stage >= ranks;
  const std::int64_t rank = back ? dims.stages - 1 - stage : stage,
                     to_turn = ranks - 1 - rank;
  const auto gradients = 2 * ranks + (ranks % 3 == 0 ? 2 : 0);
  return v_slot({.forward_there = rank,
                 .forward_back = ranks + to_turn,
                 .gradient_there = gradients + ranks + to_turn,
                 .gradient_back = gradients + rank},
                operation, back, k);
}

} // namespace

schedule v_min() {
  return {.name = "v-min",
          .where = placement::waves(1),
          .order = slot,
          .splits_backward = true};
}

} // namespace troupe
