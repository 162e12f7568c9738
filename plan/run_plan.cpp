// SPDX-License-Identifier: BSD-3-Clause
#include "plan/run_plan.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace troupe {

std::string run_plan::name_of(position p) const {
  const auto name = stage_name({replica_at(p), p.stage});
  return tensor > 1 ? name + " (tensor shard " + std::to_string(p.tensor) + ")" : name;
}

std::string run_plan::optimizer_of(position p) const {
  auto name = "optimizer of stage " + std::to_string(p.stage);
  if (p.data > 0)
    name += " (data replica " + std::to_string(p.data) + ")";
  if (tensor > 1)
    name += " (tensor shard " + std::to_string(p.tensor) + ")";
  return name;
}

std::string run_plan::server_of(position p) const {
  return "parameter server of stage " + std::to_string(p.stage) + " (share "
         + std::to_string(p.data) + ")";
}

std::string run_plan::source_of(position p) const {
  return p.data > 0 ? "data_source of data replica " + std::to_string(p.data)
                    : "data_source";
}

std::vector<position> run_plan::norm_group(position p) const {
  const bool all_stages = work->optimizer.scope == clip_scope::network;
  const bool shared = shares_out(shared_out::optimizer_state);
  const int first = shared ? 0 : p.data / expert * expert,
            last = first + (shared ? data : expert);
  std::vector<position> result;
  for (int s = all_stages ? 0 : p.stage; s < (all_stages ? dims.stages : p.stage + 1);
       ++s)
    for (int d = first; d < last; ++d)
      for (int t = 0; t < tensor; ++t)
        result.push_back({d, 0, s, t});
  return result;
}

const network<float>& run_plan::network_of(position p) const {
  return work->shards.empty() ? work->whole
                              : work->shards[static_cast<std::size_t>(p.tensor)];
}

namespace {

slice<float> layers_of_stage(const run_plan& plan, position p,
                             const network<float>& whole, int team_size) {
  const auto s = static_cast<std::size_t>(p.stage);
  const auto segments = plan.segments_of(p.stage);
  return {
    whole,
    plan.work->first_layers[s],
    plan.work->first_layers[s + 1],
    team_size,
    {segments, segments.size() > 1 && plan.bounds_of(p.hosted()).split_backward > 0}};
}

} // namespace

slice<float> run_plan::slice_of(position p, int team_size) const {
  return layers_of_stage(*this, p, network_of(p), team_size);
}

slices_by_length<float> run_plan::slices_of(position p, int team_size) const {
  return {network_of(p), batches(), [&](const network<float>& whole) {
            return layers_of_stage(*this, p, whole, team_size);
          }};
}

std::int64_t run_plan::values_below(position p, std::int64_t length) const {
  if (p.stage == 0)
    return 0;
  const auto& whole = network_of(p);
  const auto first =
    static_cast<std::size_t>(work->first_layers[static_cast<std::size_t>(p.stage)]);
  return length == 0 || length == whole.rows
           ? whole.layers[first]->input_size(1)
           : of_length(whole, length).layers[first]->input_size(1);
}

std::vector<int> run_plan::segments_of(int stage) const {
  std::vector<int> result{0};
  if (!recomputes() || recomputed_units == 0)
    return result;
  if (!work) {
    for (int i = recomputed_units; i < sizes.buckets; i += recomputed_units)
      result.push_back(i);
    return result;
  }
  const auto s = static_cast<std::size_t>(stage);
  const auto& units = work->whole.unit_of_layer;
  const auto unit_of = [&](int layer) {
    return units[static_cast<std::size_t>(layer)];
  };
  const int first = work->first_layers[s];
  int begin = first;
  for (int layer = first; layer < work->first_layers[s + 1]; ++layer)
    if (unit_of(layer) - unit_of(begin) >= recomputed_units) {
      begin = layer;
      result.push_back(layer - first);
    }
  return result;
}

double run_plan::operations_of(int stage) const {
  const auto s = static_cast<std::size_t>(stage);
  double result = 0;
  for (int i = work->first_layers[s]; i < work->first_layers[s + 1]; ++i)
    result += work->whole.layers[static_cast<std::size_t>(i)]->operations();
  return result;
}

bool run_plan::leaves_at_launch(position lower) const {
  auto upper = lower;
  ++upper.stage;
  if (!work || clock != clock_kind::real || has_relays || sch.local_rule())
    return false;
  const auto waits = [this](position p) {
    return processor_of(rank_of(p)).is_gpu() && !passes_meet(p.stage);
  };
  return waits(lower) && waits(upper);
}

std::vector<int> run_plan::experts_of(int stage) const {
  std::vector<int> result;
  for (int e = 0; e < expert && !work && expert > 1; ++e)
    result.push_back(stage * expert + e);
  if (!work)
    return result;
  const auto s = static_cast<std::size_t>(stage);
  for (std::size_t i = 0; i < work->whole.experts.size(); ++i)
    if (const auto layer_index = static_cast<int>(work->whole.experts[i].of_layer);
        layer_index >= work->first_layers[s] && layer_index < work->first_layers[s + 1])
      result.push_back(static_cast<int>(i));
  return result;
}

position run_plan::host_of(int number, position p) const {
  if (!work) {
    p.data = p.data / expert * expert + number % expert;
    return p;
  }
  const auto& asked = work->whole.experts[static_cast<std::size_t>(number)];
  p.data = p.data / expert * expert + asked.index * expert / work->experts.count;
  return p;
}

std::string run_plan::name_of_expert(int number, position host) const {
  if (!work)
    return "expert " + std::to_string(number % expert) + " with " + name_of(host);
  const auto& asked = work->whole.experts[static_cast<std::size_t>(number)];
  const auto& layer = work->whole.layers[asked.of_layer]->parameters().front().name;
  return "expert " + std::to_string(asked.index) + " of "
         + layer.substr(0, layer.find(".ln")) + " with " + name_of(host);
}

std::vector<layer_bucket> run_plan::layer_buckets(position p) const {
  std::vector<layer_bucket> result;
  const auto s = static_cast<std::size_t>(p.stage);
  const auto experts = experts_of(p.stage);
  for (int i = work->first_layers[s]; i < work->first_layers[s + 1]; ++i) {
    const auto layer = static_cast<std::size_t>(i);
    result.push_back({layer, -1, network_of(p).layers[layer]});
    for (const int number : experts)
      if (const auto& expert_entry =
            work->whole.experts[static_cast<std::size_t>(number)];
          expert_entry.of_layer == layer && host_of(number, p) == p)
        result.push_back({layer, number, expert_entry.expert});
  }
  return result;
}

layer_list<float> run_plan::layers_of(position p) const {
  layer_list<float> result;
  for (auto& bucket : layer_buckets(p))
    result.push_back(std::move(bucket.owner));
  return result;
}

std::vector<bucket_group> run_plan::groups_of(position p) const {
  std::vector<bucket_group> result(buckets_of(p).size(), {p.data, data, 1});
  if (work)
    for (std::size_t b = 0; const auto& bucket : layer_buckets(p)) {
      if (bucket.expert >= 0)
        result[b] = {p.data / expert, data / expert, expert};
      ++b;
    }
  return result;
}

std::vector<std::int64_t> run_plan::buckets_of(position p) const {
  if (!work) {
    // Each bucket has at least one value per data replica, so that messages of zero
    // bytes still take the latency.
    const double values = sizes.gradient / sizeof(float) / sizes.buckets / tensor;
    return std::vector(static_cast<std::size_t>(sizes.buckets),
                       std::max<std::int64_t>(std::llround(values), data));
  }
  std::vector<std::int64_t> result;
  for (const auto& l : layers_of(p))
    result.push_back(l->bucket());
  return result;
}

bucket_shares run_plan::state_shares_of(position p) const {
  bucket_shares result;
  for (const auto& group : groups_of(p))
    result.push_back(state_shares() > 1 ? bucket_share{group.index, group.count}
                                        : bucket_share{});
  return result;
}

std::int64_t run_plan::state_values_of(position p) const {
  const auto shares = state_shares_of(p);
  const auto buckets = buckets_of(p);
  std::int64_t sum = 0;
  for (std::size_t b = 0; b < buckets.size(); ++b)
    sum += shares[b].held(buckets[b]);
  return sum;
}

bucket_shares run_plan::shares_of(position p) const {
  return shares_out(shared_out::optimizer_state) ? state_shares_of(p)
                                                 : bucket_shares(buckets_of(p).size());
}

std::vector<std::int64_t> run_plan::held_of(shared_out tensors, position p) const {
  auto result = buckets_of(p);
  const auto shares = shares_of(p);
  for (std::size_t b = 0; b < result.size() && shares_out(tensors); ++b)
    result[b] = shares[b].held(result[b]);
  return result;
}

int run_plan::rank_of(position p) const {
  const int in_pipe = troupe::rank_of(sch.where, dims, p.hosted());
  return (p.data * ranks_of_pipeline() + in_pipe) * tensor + p.tensor;
}

stage_bounds run_plan::bounds_of(hosted_stage where) const {
  const int rank = troupe::rank_of(sch.where, dims, where);
  const auto hosted = troupe::hosted_by(sch.where, dims, rank);
  const auto bounds = troupe::bounds_of(sch, settled(sch, dims), rank);
  return bounds[static_cast<std::size_t>(std::ranges::find(hosted, where)
                                         - hosted.begin())];
}

int run_plan::snapshots_of(position p) const {
  if (evaluate_every == 0 || !in_snapshot(p))
    return 0;
  return 2 + bounds_of({p.direction, 0}).stashes / dims.microbatches;
}

int run_plan::stops_with(int rank) const {
  const bool together = updates_are_by(update_by::all_replicas) || exchange->staleness;
  return together ? 0 : data_of(rank);
}

std::vector<position> run_plan::hosted_by(int rank) const {
  std::vector<position> result;
  for (const auto& h : troupe::hosted_by(sch.where, dims, pipe_rank(rank)))
    result.push_back({data_of(rank), h.direction, h.stage, shard_of(rank)});
  return result;
}

batching run_plan::batches() const {
  const int microbatches = data * dims.microbatches;
  const auto batch = work ? work->batch : microbatches;
  return {batch, microbatches, dims.batches_before * batch, uneven};
}

double run_plan::part_of_largest(int of_data, int microbatch) const {
  if (!uneven)
    return 1;
  const auto all_batches = batches();
  const auto longest = work ? work->whole.rows : std::int64_t{1};
  const auto tokens = [&](const microbatch_shape& dimensions) {
    return static_cast<double>(dimensions.samples
                               * (dimensions.length > 0 ? dimensions.length : longest));
  };
  double most = 0;
  for (const auto& dimensions : all_batches.shapes())
    most = std::max(most, tokens(dimensions));
  return tokens(all_batches.shape_of(microbatch_of_all(of_data, microbatch))) / most;
}

int run_plan::microbatch_of_all(int of_data, int microbatch) const {
  const int share = dims.microbatches;
  return (microbatch / share * data + of_data) * share + microbatch % share;
}

std::vector<int> all_ranks(const run_plan& plan) {
  std::vector<int> result(static_cast<std::size_t>(plan.ranks()));
  std::iota(result.begin(), result.end(), 0);
  return result;
}

} // namespace troupe
