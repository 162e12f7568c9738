// SPDX-License-Identifier: BSD-3-Clause
#include "actors/pipeline/stage_meetings.hpp"

#include <utility>

namespace troupe {

stage_meetings::stage_meetings(const run_plan& plan, position where, stage_work& work,
                               memory_account* account, group_finder groups)
  : yields_sums_(plan.sums_take_time()),
    groups_(std::move(groups)),
    alone_(true),
    sums_layers_(plan.shares_out(shared_out::gradients)),
    gathers_layers_(plan.shares_out(shared_out::parameters)),
    first_layer_(plan.work ? static_cast<std::size_t>(
                   plan.work->first_layers[static_cast<std::size_t>(where.stage)])
                           : 0) {
  if (plan.tensor > 1)
    shards_.emplace(plan, where, work.copies_to_shards());
  if (sums_layers_)
    layers_.emplace(plan, where, work.memory_of_layers());
  if (!plan.experts_of(where.stage).empty())
    experts_.emplace(plan, where, work.lender(), account);
  alone_ = !shards_ && !layers_ && !experts_;
}

meeting_list stage_meetings::list() {
  meeting_list result;
  if (shards_)
    result[meeting_kind::shards] = &*shards_;
  if (layers_)
    result[meeting_kind::layers] = &*layers_;
  if (experts_)
    result[meeting_kind::experts] = &*experts_;
  return result;
}

void stage_meetings::yield(const sum_asker& ask) {
  if (yields_sums_)
    list().yield_sums(ask);
  if (groups_)
    list().exchange_by(groups_, ask);
}

weaving stage_meetings::weaving_of(op what) const {
  return {.gathers = gathers_layers_ && what != op::weight_gradient,
          .sums = sums_layers_ && adds_gradient(what)};
}

void stage_meetings::expect(const action& a, int version, bool begins_sum,
                            const pass_pieces<float>& pass) {
  using kind = shard_collective<float>::kind;
  if (layers_)
    layers_->expect(version, begins_sum);
  std::vector<shard_collective<float>> of_shards;
  std::vector<expert_meeting::rows_of_layer> of_experts;
  for (const auto& p : pass)
    if (p.then.what == kind::experts)
      of_experts.push_back({first_layer_ + static_cast<std::size_t>(p.layer), p.then,
                            p.recomputes ? op::recompute : a.what});
    else if (p.then.what != kind::none)
      of_shards.push_back(p.then);
  if (shards_)
    shards_->expect(std::move(of_shards));
  if (experts_)
    experts_->expect(a, version, std::move(of_experts));
}

woven_action stage_meetings::weave(const action& a, int version, bool begins_sum,
                                   pass_pieces<float> pass) {
  if (alone_)
    return troupe::weave(std::move(pass), {});
  expect(a, version, begins_sum, pass);
  for (auto& piece : pass)
    piece.share *= own_share();
  return troupe::weave(std::move(pass), weaving_of(a.what));
}

std::vector<mail::expert_load> stage_meetings::take_loads() {
  return alone_ || !experts_ ? std::vector<mail::expert_load>{}
                             : experts_->take_loads();
}

void stage_meetings::begin_update() {
  if (experts_)
    experts_->begin_update();
}

} // namespace troupe
