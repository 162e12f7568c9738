// SPDX-License-Identifier: BSD-3-Clause
#include "actors/meetings/layer_meeting.hpp"

#include "plan/exchange_sizes.hpp"
#include "plan/stage_buckets.hpp"

#include <utility>

namespace troupe {

layer_meeting::layer_meeting(const run_plan& plan, position where, layer_memory memory)
  : collective_meeting(plan, where, meeting_kind::layers),
    memory_(std::move(memory)),
    values_(buckets_of(plan, where)) {
  for (std::size_t i = 0; i < values_.size(); ++i)
    coders_.push_back(plan.exchange->compression->make());
}

bool layer_meeting::is_done(int index) const {
  const auto& uses = step_of(index) == exchange_step::gather ? gathering_ : summing_;
  return uses[static_cast<std::size_t>(index / 2 % 2)].instance < 0;
}

meeting_messages layer_meeting::begin(int index) {
  const auto step = step_of(index);
  const bool gather = step == exchange_step::gather;
  const int layer = index / 2;
  const int instance = 2 * started_count_++ + (gather ? 1 : 0);
  uses_of(step)[static_cast<std::size_t>(layer % 2)] = {layer, instance};
  const auto part =
    replica_part(plan(), step, {where().data, plan().mesh[axis::data], 1},
                 values_[static_cast<std::size_t>(layer)], instance);
  collective_memory memory;
  if (memory_.gradients) {
    auto* const array =
      gather ? memory_.to_gather(layer, version_) : memory_.gradients(layer);
    memory = {array, array, gather ? memory_.gathers : memory_.sums,
              gather ? nullptr : coders_[static_cast<std::size_t>(layer)].get()};
  }
  return start(part, memory);
}

/// Adds a sum that has ended to the sums of other microbatches, in the order of
/// microbatches.
void layer_meeting::ended(int instance) {
  const auto step = step_of_instance(instance);
  for (auto& use : uses_of(step))
    if (use.instance == instance) {
      use.instance = -1;
      if (step == exchange_step::sum && memory_.add_share)
        memory_.add_share(use.layer, begins_sum_);
    }
}

position layer_meeting::member_at(int, int member) const {
  auto result = where();
  result.data = member;
  return result;
}

traffic layer_meeting::traffic_of(int instance) const {
  return sums_gradients(instance) ? traffic::gradients : traffic::parameters;
}

} // namespace troupe
