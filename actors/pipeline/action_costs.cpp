// SPDX-License-Identifier: BSD-3-Clause
#include "actors/pipeline/action_costs.hpp"

#include "plan/stage_layers.hpp"

namespace troupe {

const slices_by_length<float>& action_costs::layers_of(int stage) {
  auto& layers = layers_[stage];
  if (!layers)
    layers = slices_of(plan_, {where_.data, where_.direction, stage, where_.tensor});
  return *layers;
}

/// The share of a stage's forward that the recompute action runs again, 0 to 1. The
/// backward that follows recomputes the rest.
double action_costs::recomputed_share(int stage) {
  if (!plan_.recomputes() || plan_.recomputed_units == 0)
    return 1;
  if (plan_.work)
    return layers_of(stage).whole().recomputed_share();
  return 1
         - static_cast<double>(segments_of(plan_, stage).back())
             / plan_.work.simulated().buckets;
}

/// The cost of an action relative to a whole action of its kind with the largest
/// microbatch.
double action_costs::size_of(const action& a) {
  return (a.op == op::recompute ? recomputed_share(a.stage) : 1)
         * (a.op == op::update ? 1 : plan_.part_of_largest(where_.data, a.microbatch));
}

/// Floating-point operations of an action on this tensor shard, without experts.
double action_costs::operations_of(const action& a) {
  if (!plan_.work)
    return 0;
  const auto n = plan_.microbatch_of_all(where_.data, a.microbatch);
  const auto shape = plan_.batches().shape_of(n);
  const double forward = layers_of(a.stage).at_length(shape.length).operations()
                         * static_cast<double>(shape.samples);
  return forward * (a.op == op::backward ? 2 : 1)
         * (a.op == op::recompute ? recomputed_share(a.stage) : 1) / stage_share_;
}

/// Adds the cost of the segments that a backward recomputes, if any.
void action_costs::add_segments(const action& backward, charge& cost) {
  const double share = 1 - recomputed_share(backward.stage);
  if (share == 0 || !goes_back(backward.op))
    return;
  cost.also.push_back(
    {static_cast<int>(op::recompute), backward.stage, share * size_of(backward)});
  cost.operations += share
                     * operations_of({op::forward, backward.direction, backward.stage,
                                      backward.microbatch});
}

charge action_costs::cost_of(const action& a, const std::optional<action>& pair) {
  charge result{.operations = operations_of(a), .size = size_of(a), .also = {}};
  if (pair) {
    result.also.push_back({static_cast<int>(pair->op), pair->stage, size_of(*pair)});
    if (plan_.machine.clock == clock_kind::virtual_time)
      result.operations += operations_of(*pair);
    add_segments(*pair, result);
  }
  add_segments(a, result);
  return result;
}

std::int64_t action_costs::values_below(int stage, int microbatch) {
  if (!plan_.work)
    return 0;
  const auto length = plan_.length_of(where_.data, microbatch);
  return layers_of(stage).at_length(length).layers().front()->input_size(1);
}

} // namespace troupe
