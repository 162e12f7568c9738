// SPDX-License-Identifier: BSD-3-Clause
#include "actors/run/gathered_parameters.hpp"

#include "kernels/arrays.hpp"
#include "plan/layout.hpp"
#include "plan/replica_rules.hpp"
#include "plan/sharding.hpp"
#include "plan/stage_buckets.hpp"

#include <algorithm>
#include <cstring>
#include <map>
#include <tuple>
#include <utility>

namespace troupe {

namespace {

/// A bucket that a stage holds, and the share of that bucket that the stage updates.
struct held_bucket {
  layer_bucket is;
  bucket_share share;
};

std::vector<held_bucket> held_by(const run_plan& plan, position where) {
  std::vector<held_bucket> result;
  const auto shares = shares_of(plan, where);
  for (auto& bucket : layer_buckets(plan, where))
    result.push_back({std::move(bucket), shares[result.size()]});
  return result;
}

/// Copies the part of a layer that a stage holds to the part's place in the whole
/// layer.
void put_together(const run_plan& plan, shared_out kind, const held_bucket& bucket,
                  const float* held, float* layer_values) {
  const auto& whole = *plan.work->whole.layers[bucket.is.of_layer];
  const auto& shard = *bucket.is.owner;
  const auto values = shard.bucket();
  const auto& share = bucket.share;
  if (share.count == 1 || (kind == shared_out::parameters && !shares_out(plan, kind)))
    return insert_shard(whole, shard, held, layer_values);
  std::vector<float> merged(static_cast<std::size_t>(values));
  extract_shard(whole, shard, layer_values, merged.data());
  const bool only_share = shares_out(plan, kind);
  arrays<float>::copy(held + (only_share ? 0 : share.begin(values)), share.held(values),
                      merged.data() + share.begin(values));
  insert_shard(whole, shard, merged.data(), layer_values);
}

bool same(const parameter& p, const std::vector<float>& a,
          const std::vector<float>& b) {
  return std::memcmp(a.data() + p.offset, b.data() + p.offset,
                     static_cast<std::size_t>(p.values()) * sizeof(float))
         == 0;
}

/// Keeps the parameters of one bucket: the first copy gives the values, and the other
/// copies must be equal.
void keep_parameters(const run_plan& plan, position where, const held_bucket& bucket,
                     const float* held, kept_version& result, std::string& odd_stage) {
  const auto& whole = *plan.work->whole.layers[bucket.is.of_layer];
  auto& parameters = result.parameters[bucket.is.of_layer];
  parameters.resize(static_cast<std::size_t>(whole.bucket()));
  const bool first = in_snapshot(plan, where);
  const bool only_share = shares_out(plan, shared_out::parameters);
  if (first && where.tensor == 0 && (where.data == 0 || only_share))
    return put_together(plan, shared_out::parameters, bucket, held, parameters.data());
  auto copy = parameters;
  put_together(plan, shared_out::parameters, bucket, held, copy.data());
  for (const auto& part : bucket.is.owner->parameters()) {
    const bool is_copy = !first || !part.cut;
    if (is_copy && !same(whole.parameter_called(part.name), parameters, copy)
        && odd_stage.empty())
      odd_stage = plan.name_of(where);
  }
  if (first)
    parameters = std::move(copy);
}

void keep_gradients(const run_plan& plan, position where, const held_bucket& bucket,
                    const float* held, kept_version& result) {
  const bool has_some =
    where.direction == 0
    && (where.data < plan.mesh[axis::expert] || bucket.share.count > 1);
  if (!has_some)
    return;
  auto& gradients = result.gradients[bucket.is.of_layer];
  gradients.resize(
    static_cast<std::size_t>(plan.work->whole.layers[bucket.is.of_layer]->bucket()));
  put_together(plan, shared_out::gradients, bucket, held, gradients.data());
}

/// Puts the whole network together from the parts of all stages. \param odd_stage
/// receives the name of the first stage whose copy differs from that of replica 0
template <class Part>
kept_version put_together(const run_plan& plan, std::vector<Part> parts,
                          bool with_gradients, std::string& odd_stage) {
  const auto layers = plan.work->whole.layers.size();
  kept_version result;
  result.parameters.resize(layers);
  if (with_gradients)
    result.gradients.resize(layers);
  std::ranges::sort(parts, {}, [&](const Part& part) {
    return std::tuple{plan.replica_at(part.where), part.where.tensor, part.where.stage};
  });
  for (const auto& part : parts) {
    const auto held_there = held_by(plan, part.where);
    for (std::size_t b = 0; b < part.parameters.size(); ++b) {
      const auto& bucket = held_there[b];
      if (part.where.data > 0 && !replicas_agree(plan))
        continue;
      keep_parameters(plan, part.where, bucket, part.parameters[b].data(), result,
                      odd_stage);
      if (with_gradients)
        keep_gradients(plan, part.where, bucket, part.gradients[b].data(), result);
    }
  }
  return result;
}

} // namespace

gathered_parameters::gathered_parameters(const run_plan& plan,
                                         const std::vector<mail::snapshot>& parts)
  : put_together_(plan.work->whole.layers.size()),
    buckets_(plan.work->whole.layers.size()) {
  const bool in_parts =
    !plan.work->shards.empty() || shares_out(plan, shared_out::parameters);
  for (const auto& part : parts) {
    const auto held_there = held_by(plan, part.where);
    for (std::size_t b = 0; b < part.parameters.size(); ++b) {
      const auto layer = held_there[b].is.of_layer;
      const auto* const held = part.parameters[b].data();
      if (!in_parts) {
        buckets_[layer] = held;
        continue;
      }
      auto& whole = put_together_[layer];
      whole.resize(static_cast<std::size_t>(plan.work->whole.layers[layer]->bucket()));
      put_together(plan, shared_out::parameters, held_there[b], held, whole.data());
      buckets_[layer] = whole.data();
    }
  }
}

void keep_weights(const run_plan& plan, std::vector<mail::collected> parts,
                  const all_shared_parameters& shared, run_result& result) {
  if (!plan.work || parts.empty())
    return;
  auto kept =
    put_together(plan, std::move(parts), plan.keep.gradients, result.odd_stage);
  result.parameters = std::move(kept.parameters);
  result.gradients = std::move(kept.gradients);
  for (const auto& share : shared)
    if (share)
      share->put_into(result.parameters);
}

void keep_versions(const run_plan& plan, std::vector<mail::version_made> versions_made,
                   run_result& result) {
  std::map<int, std::vector<mail::version_made>> by_version;
  for (auto& part : versions_made)
    by_version[part.version].push_back(std::move(part));
  if (!by_version.empty())
    result.versions.resize(static_cast<std::size_t>(by_version.rbegin()->first));
  for (auto& [version, parts] : by_version)
    result.versions[static_cast<std::size_t>(version) - 1] =
      put_together(plan, std::move(parts), true, result.odd_stage);
}

std::string count_updates(const run_plan& plan,
                          const std::vector<mail::collected>& parts,
                          run_result& result) {
  if (parts.empty())
    return {};
  const bool alone = !updates_are_by(plan, update_by::all_replicas);
  result.updates.assign(static_cast<std::size_t>(plan.dims.stages), 0);
  for (const auto& part : parts) {
    const auto& where = part.where;
    if (where.tensor > 0 || (where.data > 0 && !alone))
      continue;
    if (where.direction == 0)
      result.updates[static_cast<std::size_t>(where.stage)] += part.updates;
    if (where.stage == 0)
      result.updated_samples += part.samples;
  }
  if (plan.dims.batches_before > 0) {
    const auto& work = *plan.work;
    for (std::size_t s = 0; s < result.updates.size(); ++s)
      result.updates[s] +=
        work.earlier.updates[static_cast<std::size_t>(work.first_layers[s])];
    result.updated_samples += plan.batches().preceding_samples;
  }
  if (plan.sch.local_rule())
    return {};
  std::map<int, const mail::collected*> first; // of ranks that stop together
  for (const auto& part : parts) {
    const auto& reference =
      *first.emplace(stops_with(plan, plan.rank_of(part.where)), &part).first->second;
    if (part.updates != reference.updates)
      return plan.name_of(reference.where) + " ended after update "
             + std::to_string(reference.updates) + ", " + plan.name_of(part.where)
             + " after update " + std::to_string(part.updates);
  }
  return {};
}

} // namespace troupe
