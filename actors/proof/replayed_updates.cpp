// SPDX-License-Identifier: BSD-3-Clause
#include "actors/proof/replayed_updates.hpp"

#include "actors/proof/replica_sums.hpp"
#include "kernels/device.hpp"
#include "plan/replica_rules.hpp"
#include "plan/sharding.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <stdexcept>

namespace troupe {

namespace {

/// \throws std::logic_error if the stage's recorded update cannot follow the actions
/// done before
void check(const replayed_stage& stage) {
  const auto& update = stage.now();
  const int newest = stage.versions.rbegin()->first;
  const auto name = to_string(update.action, true);
  if (update.version != newest + 1)
    throw std::logic_error(name + " makes version " + std::to_string(update.version)
                           + " of version " + std::to_string(newest));
  if (stage.summed == 0)
    throw std::logic_error(name + " covers no gradients");
}

} // namespace

replayed_updates::replayed_updates(const run_plan& plan,
                                   std::vector<replayed_stage>& stages,
                                   const shared_history& accesses,
                                   stream& compute_stream, update_witness* witness)
  : plan_(plan),
    stages_(stages),
    stream_(compute_stream),
    witness_(witness),
    account_(memory_of(plan.machine.processor_of(0))) {
  const auto& work = *plan.work;
  const auto count = static_cast<std::size_t>(plan.dims.stages);
  const auto shares = static_cast<std::size_t>(state_shares(plan));
  if (const auto tied = work.whole.tied())
    for (const auto& [layer, offset] : {tied->head, tied->embedding})
      for (std::size_t s = 0; s < count; ++s)
        if (const auto first = static_cast<std::size_t>(work.first_layers[s]);
            layer >= first
            && layer < static_cast<std::size_t>(work.first_layers[s + 1]))
          tied_.push_back({static_cast<int>(s), layer - first, offset});
  for (std::size_t s = 0; s < count; ++s) {
    const auto& layers = stages[s].layers().layers();
    buckets_.push_back(gradient_buckets_of(plan, static_cast<int>(s)));
    optimizers_.emplace_back(work.optimizer, layers, work.batch * plan.dims.steps,
                             account_);
    if (updates_are_by(plan, update_by::all_replicas))
      continue;
    std::vector<std::vector<shared_access>> histories;
    for (std::size_t i = 0; i < shares; ++i)
      histories.push_back(accesses.at(i * count + s));
    exchanges_.emplace_back(plan, layers, stages[s].versions.at(0),
                            std::move(histories));
  }
}

replayed_stage& replayed_updates::stage_at(int pipeline, int stage) const {
  return stages_[static_cast<std::size_t>(pipeline * plan_.dims.stages + stage)];
}

/// Returns the stages that take part in this update, if all have reached the update;
/// else an empty list.
std::vector<replayed_stage*>
replayed_updates::participants_of(const replayed_stage& stage) const {
  const auto& options = plan_.work->optimizer;
  const bool clips_network = options.clip > 0 && options.scope == clip_scope::network;
  std::vector<replayed_stage*> result;
  for (auto& candidate : stages_)
    if ((clips_network || candidate.where.stage == stage.where.stage
         || are_tied(candidate.where.stage, stage.where.stage))
        && (are_common() || candidate.where.data == stage.where.data))
      result.push_back(&candidate);
  const bool have_come = std::ranges::all_of(result, [&](const replayed_stage* s) {
    return !s->finished() && s->now().action.op == op::update
           && s->now().version == stage.now().version;
  });
  return have_come ? result : std::vector<replayed_stage*>{};
}

bool replayed_updates::are_tied(int stage, int other_stage) const {
  const auto has_copy = [this](int s) {
    return std::ranges::find(tied_, s, &copy_of_tied::stage) != tied_.end();
  };
  return has_copy(stage) && has_copy(other_stage);
}

/// Adds the gradient sums of the head and of the embedding, and stores the result in
/// both.
void replayed_updates::add_tied() {
  const auto &head = tied_.front(), &embedding = tied_.back();
  auto &of_head = stage_at(0, head.stage).sum[head.bucket],
       &of_embedding = stage_at(0, embedding.stage).sum[embedding.bucket];
  const auto values = plan_.work->whole.tied()->values;
  for (std::int64_t i = 0; i < values; ++i) {
    auto &a = of_head[static_cast<std::size_t>(head.offset + i)],
         &b = of_embedding[static_cast<std::size_t>(embedding.offset + i)];
    a = b = a + b;
  }
}

/// If gradients are clipped, adds the squares of a stage's sum to `to`. Parameters are
/// added one after another, as the norm's bits depend on the order.
void replayed_updates::add_squares(const replayed_stage& stage, double& to) const {
  const auto s = static_cast<std::size_t>(stage.where.stage);
  if (plan_.work->optimizer.clip > 0)
    for (const double part : buckets_[s].squares(readable(stage.sum), stream_))
      to += part;
}

double replayed_updates::clip(double squares, std::int64_t samples) const {
  return clip_factor(plan_.work->optimizer.clip,
                     std::sqrt(squares) / static_cast<double>(samples));
}

bool replayed_updates::make(replayed_stage& stage) {
  if (!are_common())
    return make_alone(stage);
  const int makes = stage.now().version;
  const auto participants = participants_of(stage);
  if (participants.empty())
    return false;
  std::map<int, std::int64_t> samples; // by stage, summed over replicas
  for (const auto* participant : participants) {
    check(*participant);
    samples[participant->where.stage] += participant->samples;
  }
  for (const auto& [s, count] : samples)
    add_replicas(s);
  if (!tied_.empty() && samples.contains(tied_.front().stage))
    add_tied();
  double squares = 0;
  for (const auto& [s, count] : samples) {
    auto& sum = stage_at(0, s).sum;
    if (witness_ != nullptr)
      witness_->summed(s, makes, writable(sum));
    add_squares(stage_at(0, s), squares);
  }
  for (const auto& [s, count] : samples)
    make_version(s, makes, count, clip(squares, count));
  for (auto* participant : participants)
    participant->end_update();
  return true;
}

void replayed_updates::make_version(int s, int version, std::int64_t samples,
                                    double factor) {
  auto& first = stage_at(0, s);
  const auto& from = first.versions.at(version - 1);
  auto next = from;
  run_to_end(
    [&] {
      optimizers_[static_cast<std::size_t>(s)].update(
        samples, factor, readable(first.sum), readable(from), writable(next), stream_);
    },
    &stream_);
  if (witness_ != nullptr)
    witness_->updated(s, version, writable(next));
  for (int r = 0; r < plan_.replicas(); ++r)
    stage_at(r, s).versions[version] = next;
}

/// Sums the gradients of all replicas into the stage of the first pipeline.
void replayed_updates::add_replicas(int s) {
  if (shares_out(plan_, shared_out::gradients)) {
    add_microbatches(s);
    return add_directions(s);
  }
  for (std::size_t b = 0; b < stage_at(0, s).sum.size(); ++b) {
    std::vector<float*> arrays;
    for (int r = 0; r < plan_.replicas(); ++r)
      arrays.push_back(stage_at(r, s).sum[b].data());
    buckets_[static_cast<std::size_t>(s)].sum(
      b, arrays, [this](const std::vector<float*>& values, std::int64_t n) {
        sum_replicas(plan_, values, n);
      });
  }
}

/// Sums each microbatch's gradients over data replicas, and then over microbatches. The
/// sum of each direction is stored in that direction's stage of the first data replica.
/// Gradients by microbatch are cleared in all replicas.
void replayed_updates::add_microbatches(int s) {
  for (int r = 0; r < directions(); ++r) {
    auto& stage = stage_at(r, s);
    for (std::size_t b = 0; b < stage.sum.size(); ++b)
      for (std::size_t k = 0; k < stage.by_microbatch.size(); ++k) {
        std::vector<float*> arrays;
        for (int replica = r; replica < plan_.replicas(); replica += directions())
          arrays.push_back(stage_at(replica, s).by_microbatch[k][b].data());
        sum_data_replicas(plan_, arrays,
                          static_cast<std::int64_t>(stage.sum[b].size()));
        for (std::size_t i = 0; i < stage.sum[b].size(); ++i)
          stage.sum[b][i] = k == 0 ? arrays[0][i] : stage.sum[b][i] + arrays[0][i];
      }
  }
  for (int r = 0; r < plan_.replicas(); ++r)
    stage_at(r, s).by_microbatch.clear();
}

void replayed_updates::add_directions(int s) {
  auto& to = stage_at(0, s).sum;
  for (int r = 1; r < directions(); ++r)
    for (std::size_t b = 0; b < to.size(); ++b)
      for (std::size_t i = 0; i < to[b].size(); ++i)
        to[b][i] += stage_at(r, s).sum[b][i];
}

/// Pushes the updates of all stages in `participants` to the exchanges. \pre the stages
/// are of one data replica, and all have reached the update
void replayed_updates::push(const std::vector<replayed_stage*>& participants) {
  std::map<int, std::int64_t> samples; // by stage, summed over directions
  for (const auto* stage : participants) {
    check(*stage);
    samples[stage->where.stage] += stage->samples;
  }
  const int d = participants.front()->where.data, first = d * directions();
  double squares = 0;
  for (const auto& [s, count] : samples) {
    auto& sum = stage_at(first, s).sum;
    for (int r = 1; r < directions(); ++r)
      for (std::size_t b = 0; b < sum.size(); ++b)
        for (std::size_t i = 0; i < sum[b].size(); ++i)
          sum[b][i] += stage_at(first + r, s).sum[b][i];
    add_squares(stage_at(first, s), squares);
  }
  for (const auto& [s, count] : samples)
    exchanges_[static_cast<std::size_t>(s)].push(d, count, clip(squares, count),
                                                 stage_at(first, s).sum);
}

/// Makes an update with the gradients of one data replica. Returns false if the history
/// has accesses of other data replicas first.
bool replayed_updates::make_alone(replayed_stage& stage) {
  const int d = stage.where.data, makes = stage.now().version;
  auto& exchange = exchanges_[static_cast<std::size_t>(stage.where.stage)];
  if (!exchange.under_way(d)) {
    const auto participants = participants_of(stage);
    if (participants.empty())
      return false;
    push(participants);
  }
  const auto version = exchange.pull(d);
  if (!version)
    return false;
  for (int r = 0; r < directions(); ++r) {
    auto& updated_stage = stage_at(d * directions() + r, stage.where.stage);
    updated_stage.versions[makes] = *version;
    updated_stage.end_update();
  }
  return true;
}

std::string replayed_updates::error() const {
  for (std::size_t s = 0; s < exchanges_.size(); ++s)
    if (!exchanges_[s].finished())
      return "the record of a share of stage " + std::to_string(s)
             + " has updates without an update action";
  return {};
}

const bucket_values& replayed_updates::last(int stage) const {
  return are_common() ? stage_at(0, stage).versions.rbegin()->second
                      : exchanges_[static_cast<std::size_t>(stage)].parameters();
}

} // namespace troupe
