// SPDX-License-Identifier: BSD-3-Clause
#include "actors/pipeline/stage_meetings.hpp"

#include "plan/replica_rules.hpp"
#include "plan/stage_experts.hpp"

#include <utility>

namespace troupe {

stage_meetings::stage_meetings(const run_plan& plan, position where,
                               const meeting_memory& memory, memory_account* account,
                               group_finder groups)
  : yields_sums_(plan.machine.sums_take_time()),
    groups_(std::move(groups)),
    alone_(true),
    sums_layers_(shares_out(plan, shared_out::gradients)),
    gathers_layers_(shares_out(plan, shared_out::parameters)),
    first_layer_(plan.work ? static_cast<std::size_t>(
                   plan.work->first_layers[static_cast<std::size_t>(where.stage)])
                           : 0) {
  if (plan.mesh[axis::tensor] > 1)
    shards_.emplace(plan, where, memory.to_shards);
  if (sums_layers_)
    layers_.emplace(plan, where, memory.layers);
  if (!experts_of(plan, where.stage).empty())
    experts_.emplace(plan, where, memory.lend, account);
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

void stage_meetings::yield(const sum_requester& request_sum) {
  if (yields_sums_)
    list().yield_sums(request_sum);
  if (groups_)
    list().exchange_by(groups_, request_sum);
}

weaving stage_meetings::weaving_of(op operation) const {
  return {.gathers = gathers_layers_ && operation != op::weight_gradient,
          .sums = sums_layers_ && adds_gradient(operation)};
}

void stage_meetings::expect(const action& a, int version, bool begins_sum,
                            const pass_pieces<float>& pass) {
  using kind = shard_collective<float>::kind;
  if (layers_)
    layers_->expect(version, begins_sum);
  std::vector<shard_collective<float>> of_shards;
  std::vector<expert_meeting::rows_of_layer> of_experts;
  for (const auto& p : pass)
    if (p.collective.operation == kind::experts)
      of_experts.push_back({first_layer_ + static_cast<std::size_t>(p.layer),
                            p.collective, p.recomputes ? op::recompute : a.op});
    else if (p.collective.operation != kind::none)
      of_shards.push_back(p.collective);
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
    piece.share *= stage_share();
  return troupe::weave(std::move(pass), weaving_of(a.op));
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
