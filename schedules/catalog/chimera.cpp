// SPDX-License-Identifier: BSD-3-Clause
// Chimera: pairs of 1F1B pipelines through the same ranks in opposite directions. Each
// pipeline has a copy of every stage. Li & Hoefler, "Chimera: Efficiently Training
// Large-Scale Neural Networks with Bidirectional Pipelines", 2021.
//
// A unit has as many microbatches as there are stages, an equal share in each
// direction; the last unit may be short. Of f pairs, pair i starts i/f of the way along
// the ranks. With one pair, microbatches 2 and 3 below start at rank 3.
//
//   slot    0  1  2  3  4  5  6  7  8  9             4 stages, 4 microbatches
//   rank 0  F0 .  F1 F2 B2 F3 B3 B0 .  B1 U3 U3
//   rank 1  .  F0 F2 F1 F3 B2 B0 B3 B1 .  U3 U3
//   rank 2  .  F2 F0 F3 F1 B0 B2 B1 B3 .  U3 U3
//   rank 3  F2 .  F3 F0 B0 F1 B1 B2 .  B3 U3 U3
//
// A backward takes as long as two forwards, so units do not close up: every further
// unit costs idle time. Forward doubling (section 3.5) has two microbatches in the slot
// of a forward, and units of twice as many. Slots are of one length then, and units
// close up again. A rank holds up to twice as many microbatches. Backward halving is
// this order with microbatches half as large.
//
//   slot    0   1   2   3   4   5   6   7   8   9   10  11  12  13
//   rank 0  F01 .   F23 F45 B4  F67 B5  B0  B6  B1  B7  B2  .   B3    4 stages,
//   rank 1  .   F01 F45 F23 F67 B4  B0  B5  B1  B6  B2  B7  B3  .     8 microbatches
//   rank 2  .   F45 F01 F67 F23 B0  B4  B1  B5  B2  B6  B3  B7  .
//   rank 3  F45 .   F67 F01 B0  F23 B1  B4  B2  B5  B3  B6  .   B7
//
// All directions of a stage add gradients before the update (section 3.2 of the paper).
// Eager directions add bucket by bucket; lazy directions add after all backwards of a
// rank.

#include "schedules/catalog/catalog.hpp"
#include "schedules/catalog/slots.hpp"

namespace troupe {

namespace {

// The slots of 1F1B within a unit. The next unit starts when the first slot is free on
// the first rank.
slot_formula slots(int pairs) {
  return [pairs](op operation, int stage, int k, const shape& dims) {
    const int in_unit = dims.stages / (2 * pairs);
    const auto unit_start = std::int64_t{2} * dims.stages * (k / in_unit);
    return unit_start + one_f_one_b_slot(operation, stage, k % in_unit, dims);
  };
}

// Slots of forward doubling, in half slots: each of two forwards takes one half.
std::int64_t doubled_slot(op operation, int stage, int k, const shape& dims) {
  const int in_unit = dims.stages, within = k % in_unit;
  const auto unit_start = std::int64_t{3} * dims.stages * (k / in_unit);
  if (operation == op::forward)
    return 2 * (unit_start + one_f_one_b_slot(operation, stage, within / 2, dims))
           + within % 2;
  return 2 * (unit_start + one_f_one_b_slot(operation, stage, within, dims));
}

std::string refusal_of(const chimera_options& which, const shape& dims) {
  if (which.forward_doubling && which.pairs > 1)
    return "chimera:forward_doubling=on needs pairs=1, as with more pairs two "
           "pipelines would have backwards in a slot";
  const int pairs = which.pairs, directions = 2 * pairs;
  if (dims.stages % directions == 0 && dims.microbatches % directions == 0)
    return {};
  if (pairs == 1)
    return "chimera needs even --stages and an even number of microbatches, as half of "
           "them run in each direction";
  return "chimera:pairs=" + std::to_string(pairs)
         + " needs --stages and microbatches that are multiples of "
         + std::to_string(directions) + ", the number of directions";
}

} // namespace

schedule chimera(const chimera_options& which) {
  return {
    .name = "chimera",
    .where = placement::bidirectional(which.pairs),
    .order = which.forward_doubling ? slot_formula{doubled_slot} : slots(which.pairs),
    .eager = which.eager,
    .refuses = [which](const shape& dims) { return refusal_of(which, dims); },
  };
}

} // namespace troupe
