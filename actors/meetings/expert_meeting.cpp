// SPDX-License-Identifier: BSD-3-Clause
#include "actors/meetings/expert_meeting.hpp"

#include "kernels/arrays.hpp"
#include "plan/layout.hpp"
#include "plan/stage_buckets.hpp"
#include "plan/stage_experts.hpp"
#include "plan/stage_layers.hpp"

#include <algorithm>

namespace troupe {

expert_meeting::expert_meeting(const run_plan& plan, position where, lender lend,
                               memory_account* account)
  : plan_(&plan),
    where_(where),
    lend_(std::move(lend)),
    share_(plan.work
             ? 1 - slice_of(plan, where).operations() / operations_of(plan, where.stage)
             : simulated_expert_share),
    experts_(experts_of(plan, where.stage)),
    width_(width_of_rows(plan)) {
  if (!lend_)
    return;
  buckets_ = layer_buckets(plan, where);
  payloads_ = std::make_unique<pool>(
    "rows to experts of " + plan.name_of(where), 2 * plan.work->experts.count,
    sizes_of_expert(plan, experts_.front()).payload, *account);
}

void expert_meeting::expect(const action& a, int version,
                            std::vector<rows_of_layer> steps) {
  action_ = a;
  version_ = version;
  expected_ = std::move(steps);
}

bool expert_meeting::belongs_to(int expert, std::size_t layer) const {
  return !lend_
         || plan_->work->whole.experts[static_cast<std::size_t>(expert)].of_layer
              == layer;
}

std::int64_t expert_meeting::rows_for(int expert,
                                      const shard_collective<float>& layer_rows) const {
  if (!lend_)
    return layer_rows.values / static_cast<std::int64_t>(experts_.size());
  return layer_rows
    .counts[plan_->work->whole.experts[static_cast<std::size_t>(expert)].index];
}

/// The arrays that the stage lends an expert; absent if the expert is on another rank.
std::optional<mail::lent_arrays> expert_meeting::loan_for(int number,
                                                          op operation) const {
  const int expert = experts_[static_cast<std::size_t>(number)];
  if (host_of(*plan_, expert, where_) != where_)
    return {};
  if (!lend_)
    return mail::lent_arrays{{}, {}, version_, false};
  const auto bucket = static_cast<std::size_t>(
    std::ranges::find(buckets_, expert, &layer_bucket::expert) - buckets_.begin());
  auto [parameters, gradients] = lend_(bucket, version_, adds_gradient(operation));
  return mail::lent_arrays{std::move(parameters), std::move(gradients), version_,
                           false};
}

mail::meeting_message expert_meeting::message_to(int number,
                                                 const action& expert_action,
                                                 std::int64_t rows, std::int64_t offset,
                                                 bool begins_sum) {
  mail::rows_to_expert message{expert_action,
                               where_.data % plan_->mesh[axis::expert],
                               rows,
                               {},
                               loan_for(number, expert_action.op)};
  if (message.loan)
    message.loan->begins_sum = begins_sum;
  const bool rows_travel = expert_action.op != op::weight_gradient;
  if (rows > 0 && rows_travel && payloads_) {
    message.payload = payloads_->acquire();
    arrays<float>::copy(array_ + offset, rows * width_, message.payload.data());
  }
  const int expert = experts_[static_cast<std::size_t>(number)];
  const bool is_here = message.loan.has_value();
  return {{role::expert, host_of(*plan_, expert, where_), expert},
          meeting_kind::experts,
          std::move(message),
          is_here ? std::nullopt : std::optional{traffic::experts},
          rows_travel ? rows * width_ * std::int64_t{sizeof(float)} : 0};
}

meeting_messages expert_meeting::begin(int index) {
  const auto& [layer, layer_rows, asked] = expected_[static_cast<std::size_t>(index)];
  const bool begins_sum =
    adds_gradient(asked) && std::ranges::find(sums_begun_, layer) == sums_begun_.end();
  if (begins_sum)
    sums_begun_.push_back(layer);
  auto of_experts = action_;
  of_experts.op = asked;
  meeting_messages out;
  mail::expert_load load{plan_->microbatch_of_all(where_.data, action_.microbatch),
                         layer,
                         {},
                         layer_rows.choices};
  array_ = layer_rows.array;
  row_ranges_.assign(experts_.size(), {});
  std::int64_t offset = 0;
  for (std::size_t i = 0; i < experts_.size(); ++i) {
    if (!belongs_to(experts_[i], layer))
      continue;
    const int number = static_cast<int>(i);
    const auto rows = rows_for(experts_[i], layer_rows);
    out.push_back(message_to(number, of_experts, rows, offset, begins_sum));
    row_ranges_[i] = {offset, rows * width_};
    missing_.push_back(number);
    offset += rows * width_;
    load.rows.push_back(rows);
    load.dropped -= rows;
  }
  if (asked == op::forward && lend_)
    loads_.push_back(std::move(load));
  return out;
}

meeting_messages expert_meeting::receive(mail::meeting_message received) {
  const auto& answer = std::get<mail::rows_from_expert>(received.body);
  if (std::erase(missing_, answer.expert) == 0)
    return {}; // a repeated answer
  const auto [offset, values] = row_ranges_[static_cast<std::size_t>(answer.expert)];
  if (answer.payload)
    arrays<float>::copy(answer.payload.data(), values, array_ + offset);
  return {};
}

std::optional<missing_peer> expert_meeting::waits_for() const {
  if (missing_.empty())
    return {};
  const int expert = experts_[static_cast<std::size_t>(missing_.front())];
  return missing_peer{"rows",
                      name_of_expert(*plan_, expert, host_of(*plan_, expert, where_))};
}

} // namespace troupe
