#include "actors/meetings/expert_meeting.hpp"

#include <algorithm>

namespace troupe {

std::int64_t width_of_rows(const run_plan& plan) {
  return plan.work ? plan.work->whole.experts.front().what->input() : 1;
}

expert_sizes sizes_of_expert(const run_plan& plan, int expert) {
  const auto& what = *plan.work->whole.experts[static_cast<std::size_t>(expert)].what;
  const auto& options = plan.work->experts;
  const auto most = plan.batches().largest() * plan.work->whole.rows;
  expert_sizes result{
    .rows = options.capacity_of(most), .sources = plan.expert, .width = what.input()};
  const auto all = result.rows * result.sources;
  const auto sizes = what.sizes(all, 1);
  result.stash = padded(all * result.width) + padded(sizes.saved);
  // Outputs or their gradients, and gradients of inputs.
  result.scratch = 2 * padded(all * result.width) + padded(sizes.kept);
  result.payload = result.rows * result.width;
  return result;
}

std::int64_t expert_sizes::values(int hosted, int a_layer, int stashes) const {
  return hosted
           * (stashes * padded(stash) + padded(scratch) + 2 * sources * padded(payload))
         + 2 * a_layer * padded(payload);
}

expert_exchange::expert_exchange(const run_plan& plan, position where,
                                 stage_tensors* tensors, memory_account* account)
  : plan_(&plan),
    where_(where),
    tensors_(tensors),
    experts_(plan.experts_of(where.stage)),
    width_(width_of_rows(plan)) {
  if (tensors_ == nullptr)
    return;
  buckets_ = plan.layer_buckets(where);
  payloads_ = std::make_unique<pool>(
    "rows to experts of " + plan.name_of(where), 2 * plan.work->experts.count,
    sizes_of_expert(plan, experts_.front()).payload, *account);
}

double expert_exchange::share() const {
  if (tensors_ == nullptr)
    return simulated_expert_share;
  return 1 - tensors_->operations(1) / plan_->operations_of(where_.stage);
}

position expert_exchange::host_of(int of_stage) const {
  return plan_->host_of(experts_[static_cast<std::size_t>(of_stage)], where_);
}

std::optional<mail::expert_loan>
expert_exchange::loan_for(int of_stage, const action& a, int version) {
  if (host_of(of_stage) != where_)
    return {};
  if (tensors_ == nullptr)
    return mail::expert_loan{{}, {}, version, false};
  const auto number = experts_[static_cast<std::size_t>(of_stage)];
  const auto bucket = static_cast<std::size_t>(
    std::ranges::find(buckets_, number, &layer_bucket::expert) - buckets_.begin());
  return mail::expert_loan{
    tensors_->parameters(version)[bucket],
    a.what == op::forward ? buffer{} : tensors_->gradients()[bucket], version, false};
}

bool expert_exchange::belongs_to(int expert, std::size_t layer) const {
  return tensors_ == nullptr
         || plan_->work->whole.experts[static_cast<std::size_t>(expert)].of_layer
              == layer;
}

std::int64_t expert_exchange::rows_for(int expert,
                                       const shard_collective<float>& what) const {
  if (tensors_ == nullptr)
    return what.values / static_cast<std::int64_t>(experts_.size());
  return what
    .counts[plan_->work->whole.experts[static_cast<std::size_t>(expert)].index];
}

expert_exchange::messages expert_exchange::begin(const action& a, int version,
                                                 std::size_t layer,
                                                 const shard_collective<float>& what) {
  const bool begins_sum =
    a.what != op::forward && std::ranges::find(sums_begun_, layer) == sums_begun_.end();
  if (begins_sum)
    sums_begun_.push_back(layer);
  messages out;
  mail::expert_load load{
    plan_->microbatch_of_all(where_.data, a.microbatch), layer, {}, what.choices};
  array_ = what.array;
  places_.assign(experts_.size(), {});
  std::int64_t place = 0;
  for (std::size_t i = 0; i < experts_.size(); ++i) {
    if (!belongs_to(experts_[i], layer))
      continue;
    const int number = static_cast<int>(i);
    const auto rows = rows_for(experts_[i], what);
    const auto values = rows * width_;
    mail::rows_to_expert message{
      a, where_.data % plan_->expert, rows, {}, loan_for(number, a, version)};
    if (message.loan)
      message.loan->begins_sum = begins_sum;
    if (rows > 0 && payloads_) {
      message.payload = payloads_->acquire();
      std::copy_n(array_ + place, values, message.payload.data());
    }
    places_[i] = {place, values};
    missing_.push_back(number);
    place += values;
    load.rows.push_back(rows);
    load.dropped -= rows;
    out.emplace_back(number, std::move(message));
  }
  if (a.what == op::forward && tensors_ != nullptr)
    loads_.push_back(std::move(load));
  return out;
}

void expert_exchange::take(const mail::rows_from_expert& answer) {
  const auto [place, values] = places_[static_cast<std::size_t>(answer.expert)];
  if (answer.payload)
    std::copy_n(answer.payload.data(), values, array_ + place);
  std::erase(missing_, answer.expert);
}

} // namespace troupe
