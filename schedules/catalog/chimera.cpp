// Chimera: pairs of 1F1B pipelines through the same ranks, head to tail, each with its
// own copy of every stage. Li & Hoefler, "Chimera: Efficiently Training Large-Scale
// Neural Networks with Bidirectional Pipelines", 2021.
//
// Microbatches run in units of as many as there are stages, an equal share in each
// direction; the last unit may be short. Of f pairs, pair i begins i/f of the way along
// the ranks. With one pair, microbatches 2 and 3 below start at rank 3.
//
//   slot    0  1  2  3  4  5  6  7  8  9             4 stages, 4 microbatches
//   rank 0  F0 .  F1 F2 B2 F3 B3 B0 .  B1 U3 U3
//   rank 1  .  F0 F2 F1 F3 B2 B0 B3 B1 .  U3 U3
//   rank 2  .  F2 F0 F3 F1 B0 B2 B1 B3 .  U3 U3
//   rank 3  F2 .  F3 F0 B0 F1 B1 B2 .  B3 U3 U3
//
// All directions of a stage add their gradients before its update: eagerly, bucket by
// bucket, or lazily, after all backwards of a rank (section 3.2 of the paper).

#include "schedules/catalog/catalog.hpp"
#include "schedules/catalog/slots.hpp"

namespace troupe {

namespace {

// 1F1B within a unit; the next unit starts when its first slot is free on the first
// rank.
slot_formula slots(int pairs) {
  return [pairs](op what, int stage, int k, const shape& dims) {
    const int in_unit = dims.stages / (2 * pairs);
    const auto unit_start = std::int64_t{2} * dims.stages * (k / in_unit);
    return unit_start + one_f_one_b_slot(what, stage, k % in_unit, dims);
  };
}

std::string refusal_of(int pairs, const shape& dims) {
  const int directions = 2 * pairs;
  if (dims.stages % directions == 0 && dims.microbatches % directions == 0)
    return {};
  if (pairs == 1)
    return "chimera runs half of the microbatches in each direction: it needs an even "
           "number of stages and an even number of microbatches";
  return "chimera with " + std::to_string(pairs) + " pairs of pipelines has "
         + std::to_string(directions)
         + " directions: stages and microbatches must each be a multiple of them";
}

} // namespace

schedule chimera(bool eager, int pairs) {
  return {
    .name = "chimera",
    .where = placement::bidirectional(pairs),
    .order = slots(pairs),
    .eager = eager,
    .refuses = [pairs](const shape& dims) { return refusal_of(pairs, dims); },
  };
}

} // namespace troupe
