// SPDX-License-Identifier: BSD-3-Clause
#include "actors/nodes/message_validation.hpp"

#include "actors/nodes/meeting_rules.hpp"
#include "actors/nodes/message_rules.hpp"
#include "plan/expert_sizes.hpp"
#include "plan/stage_experts.hpp"
#include "plan/stage_pools.hpp"

#include <algorithm>
#include <span>
#include <variant>

namespace troupe {

namespace {

using message_rules = joined_rules<tensor_rules, meeting_rules, report_rules>;

} // namespace

std::vector<std::int64_t> tensor_bytes(const run_plan& plan,
                                       const wire::addressed_message& message) {
  const auto sizes_of = [&plan](const auto& m) -> byte_counts {
    if constexpr (requires { message_rules::sizes(plan, m); })
      return message_rules::sizes(plan, m);
    else
      return {};
  };
  return std::visit(sizes_of, message.message);
}

message_validation::message_validation(std::shared_ptr<const run_plan> plan)
  : plan_(std::move(plan)) {
  const int last = plan_->dims.stages - 1;
  std::int64_t largest = 0;
  for (const auto& l : plan_->work->whole.layers)
    largest = std::max(largest, l->bucket());
  for (int d = 0; d < plan_->directions(); ++d)
    for (int s = 0; s <= last; ++s)
      for (int t = 0; t < plan_->mesh[axis::tensor]; ++t) {
        const position where{0, d, s, t}, below{0, d, s - 1, t};
        auto& facts = stages_.emplace_back();
        const auto sizes = pools_of(*plan_, where);
        if (s > 0)
          facts.capacity_below = pools_of(*plan_, below).boundary;
        if (s < last)
          facts.capacity_above = sizes.boundary;
        if (const auto experts = experts_of(*plan_, s); !experts.empty())
          facts.most_rows = sizes_of_expert(*plan_, experts.front()).payload;
        facts.most_array = std::max({largest, sizes.to_shards.values, sizes.sums.values,
                                     sizes.gathers.values, sizes.ties.values});
      }
}

void message_validation::set_groups(const known_groups& groups) {
  const auto candidates = exchanging_groups(*plan_);
  for (const auto& [number, id] : groups.ids)
    groups_.push_back(candidates[static_cast<std::size_t>(number)]);
  knows_groups_ = true;
}

rule_context
message_validation::context_of(const wire::addressed_message& message) const {
  static const shard_sizes no_stage;
  const auto where = message.to.where;
  const auto index = [&] {
    return static_cast<std::size_t>((where.direction * plan_->dims.stages + where.stage)
                                      * plan_->mesh[axis::tensor]
                                    + where.tensor);
  };
  const auto& sizes = is_stage(*plan_, where) ? stages_[index()] : no_stage;
  std::span<const exchanging_group> groups;
  if (knows_groups_)
    groups = groups_;
  return {*plan_, sizes, message.to, groups};
}

std::string
message_validation::validation_error(const wire::addressed_message& message) const {
  if (!exists(*plan_, message.to))
    return "it sent a message to an actor that this run does not have";
  const auto error_of = [context = context_of(message)](const auto& m) {
    return message_rules::error(context, m);
  };
  auto error = std::visit(error_of, message.message);
  if (!error.empty())
    return error;
  return unless(tensor_bytes(*plan_, message) == message.tensors,
                "a tensor of another size than the run's");
}

std::int64_t message_validation::capacity_of(const wire::addressed_message& message,
                                             std::int64_t bytes) const {
  const auto capacity = [context = context_of(message), bytes](const auto& m) {
    return message_rules::capacity(context, m, bytes);
  };
  return std::visit(capacity, message.message);
}

} // namespace troupe
