// SPDX-License-Identifier: BSD-3-Clause
#include "actors/meetings/expert_meeting.hpp"

#include "kernels/arrays.hpp"

#include <algorithm>

namespace troupe {

expert_meeting::expert_meeting(const run_plan& plan, position where, lender lend,
                               memory_account* account)
  : plan_(&plan),
    where_(where),
    lend_(std::move(lend)),
    share_(plan.work
             ? 1 - plan.slice_of(where).operations() / plan.operations_of(where.stage)
             : simulated_expert_share),
    experts_(plan.experts_of(where.stage)),
    width_(width_of_rows(plan)) {
  if (!lend_)
    return;
  buckets_ = plan.layer_buckets(where);
  payloads_ = std::make_unique<pool>(
    "rows to experts of " + plan.name_of(where), 2 * plan.work->experts.count,
    sizes_of_expert(plan, experts_.front()).payload, *account);
}

void expert_meeting::expect(const action& a, int version,
                            std::vector<rows_of_layer> all) {
  what_ = a;
  version_ = version;
  expected_ = std::move(all);
}

bool expert_meeting::belongs_to(int expert, std::size_t layer) const {
  return !lend_
         || plan_->work->whole.experts[static_cast<std::size_t>(expert)].of_layer
              == layer;
}

std::int64_t expert_meeting::rows_for(int expert,
                                      const shard_collective<float>& what) const {
  if (!lend_)
    return what.values / static_cast<std::int64_t>(experts_.size());
  return what
    .counts[plan_->work->whole.experts[static_cast<std::size_t>(expert)].index];
}

/// The arrays that the stage lends an expert; absent if the expert is on another rank.
std::optional<mail::expert_loan> expert_meeting::loan_for(int number, op what) const {
  const int expert = experts_[static_cast<std::size_t>(number)];
  if (plan_->host_of(expert, where_) != where_)
    return {};
  if (!lend_)
    return mail::expert_loan{{}, {}, version_, false};
  const auto bucket = static_cast<std::size_t>(
    std::ranges::find(buckets_, expert, &layer_bucket::expert) - buckets_.begin());
  auto [parameters, gradients] = lend_(bucket, version_, adds_gradient(what));
  return mail::expert_loan{std::move(parameters), std::move(gradients), version_,
                           false};
}

mail::letter expert_meeting::letter_to(int number, const action& what,
                                       std::int64_t rows, std::int64_t place,
                                       bool begins_sum) {
  mail::rows_to_expert message{
    what, where_.data % plan_->expert, rows, {}, loan_for(number, what.what)};
  if (message.loan)
    message.loan->begins_sum = begins_sum;
  const bool rows_travel = what.what != op::weight_gradient;
  if (rows > 0 && rows_travel && payloads_) {
    message.payload = payloads_->acquire();
    arrays<float>::copy(array_ + place, rows * width_, message.payload.data());
  }
  const int expert = experts_[static_cast<std::size_t>(number)];
  const bool is_here = message.loan.has_value();
  return {{role::expert, plan_->host_of(expert, where_), expert},
          meeting_kind::experts,
          std::move(message),
          is_here ? std::nullopt : std::optional{traffic::experts},
          rows_travel ? rows * width_ * std::int64_t{sizeof(float)} : 0};
}

letters expert_meeting::begin(int occasion) {
  const auto& [layer, what, asked] = expected_[static_cast<std::size_t>(occasion)];
  const bool begins_sum =
    adds_gradient(asked) && std::ranges::find(sums_begun_, layer) == sums_begun_.end();
  if (begins_sum)
    sums_begun_.push_back(layer);
  auto of_experts = what_;
  of_experts.what = asked;
  letters out;
  mail::expert_load load{
    plan_->microbatch_of_all(where_.data, what_.microbatch), layer, {}, what.choices};
  array_ = what.array;
  places_.assign(experts_.size(), {});
  std::int64_t place = 0;
  for (std::size_t i = 0; i < experts_.size(); ++i) {
    if (!belongs_to(experts_[i], layer))
      continue;
    const int number = static_cast<int>(i);
    const auto rows = rows_for(experts_[i], what);
    out.push_back(letter_to(number, of_experts, rows, place, begins_sum));
    places_[i] = {place, rows * width_};
    missing_.push_back(number);
    place += rows * width_;
    load.rows.push_back(rows);
    load.dropped -= rows;
  }
  if (asked == op::forward && lend_)
    loads_.push_back(std::move(load));
  return out;
}

letters expert_meeting::take(mail::letter what) {
  const auto& answer = std::get<mail::rows_from_expert>(what.what);
  if (std::erase(missing_, answer.expert) == 0)
    return {}; // a repeated answer
  const auto [place, values] = places_[static_cast<std::size_t>(answer.expert)];
  if (answer.payload)
    arrays<float>::copy(answer.payload.data(), values, array_ + place);
  return {};
}

std::optional<absence> expert_meeting::waits_for() const {
  if (missing_.empty())
    return {};
  const int expert = experts_[static_cast<std::size_t>(missing_.front())];
  return absence{"its rows",
                 plan_->name_of_expert(expert, plan_->host_of(expert, where_))};
}

} // namespace troupe
