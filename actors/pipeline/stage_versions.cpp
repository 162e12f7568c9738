// SPDX-License-Identifier: BSD-3-Clause
#include "actors/pipeline/stage_versions.hpp"

#include "kernels/arrays.hpp"
#include "plan/layer_reader.hpp"
#include "plan/replica_rules.hpp"
#include "plan/sharding.hpp"
#include "plan/stage_buckets.hpp"
#include "plan/stage_rules.hpp"

#include <string>
#include <utility>

namespace troupe {

bucket_pools pools_by_bucket(const std::string& name, int count,
                             const std::vector<std::int64_t>& sizes,
                             memory_account& account) {
  bucket_pools result;
  for (const auto bucket : sizes)
    result.push_back(std::make_unique<pool>(name, count, bucket, account));
  return result;
}

std::vector<buffer> acquire(const bucket_pools& pools) {
  std::vector<buffer> result;
  for (const auto& p : pools)
    result.push_back(p->acquire());
  return result;
}

stage_versions::stage_versions(const run_plan& plan, position where,
                               const stage_pools& sizes, rank_memory& memory,
                               stream& compute_stream)
  : stream_(compute_stream),
    older_are_rounded_(rounds_older_versions(plan)),
    held_buckets_(layer_buckets(plan, where)),
    values_(sizes.buckets),
    whole_(pools_by_bucket("weight versions of " + plan.name_of(where), sizes.versions,
                           sizes.buckets, memory.account(memory_use::parameters))),
    rounded_(pools_by_bucket("older weight versions of " + plan.name_of(where),
                             sizes.rounded_versions, sizes.rounded_buckets,
                             memory.account(memory_use::parameters))),
    snapshots_(pools_by_bucket("snapshots of " + plan.name_of(where), sizes.snapshots,
                               sizes.buckets, memory.account(memory_use::passing))) {
  const bool shared_out = shares_out(plan, shared_out::parameters);
  const auto shares = shares_of(plan, where);
  for (std::size_t b = 0; b < held_buckets_.size(); ++b)
    firsts_.push_back(shared_out ? shares[b].begin(held_buckets_[b].owner->bucket())
                                 : 0);
  for (std::size_t b = 0; b < sizes.packed.size(); ++b) {
    auto& packed_memory =
      packed_memory_.emplace_back(sizes.packed[b], memory.account(memory_use::passing));
    memory.account(memory_use::passing).use(packed_memory.bytes());
    packed_versions_.emplace_back(held_buckets_[b].owner->packed_copies(),
                                  packed_weights<float>::nothing);
  }
  fill(0, plan, plan.work->weights);
  const stage_version_ledger ledger{plan.sch, plan.dims, where.hosted()};
  for (int older = 1; older <= plan.dims.older; ++older)
    if (ledger.knows(-older))
      fill(-older, plan, plan.work->earlier.older[static_cast<std::size_t>(older) - 1]);
}

/// Stores a version from `source`: of each bucket the stage's part of the layer, or a
/// share of that part.
/// \param number of the version; older versions than the first are negative
void stage_versions::fill(int number, const run_plan& plan,
                          const weight_source& source) {
  const bool rounded = older_are_rounded_ && number < 0;
  held_version version{acquire(rounded ? rounded_ : whole_), {}};
  layer_reader layers{plan, source};
  stream host_stream; // on the CPU: a GPU cannot access the reader's memory
  for (std::size_t b = 0; b < held_buckets_.size(); ++b) {
    const auto& layer_values = layers.values(held_buckets_[b]);
    auto* const to = version.buckets[b].data();
    if (rounded)
      round_bucket(held_buckets_[b].owner->parameters(), layer_values.data(), to,
                   host_stream);
    else
      arrays<float>::copy(layer_values.data() + firsts_[b], values_[b], to);
    version.addresses.emplace_back(
      bucket_at(to, rounded ? precision::bf16 : precision::fp32, number, b));
  }
  versions_[number] = std::move(version);
}

weight_bucket<float> stage_versions::bucket_at(const float* where, precision matrices,
                                               int version, std::size_t bucket) {
  if (packed_memory_.empty())
    return {where, matrices, version};
  return {where,
          matrices,
          version,
          {packed_memory_[bucket].data(), packed_versions_[bucket].data()}};
}

std::vector<weight_bucket<float>> stage_versions::stored(int version) const {
  std::vector<weight_bucket<float>> result;
  for (const auto& address : versions_.at(version).addresses)
    result.push_back(address.now());
  return result;
}

update_buffers stage_versions::prepare_update(const update_facts& update) {
  auto& old = versions_.at(update.from);
  update_buffers buffers{.from = old.buckets};
  auto& next = versions_[update.from + 1];
  if (update.in_place) {
    next.buckets = std::move(versions_.extract(update.from).mapped().buckets);
  } else if (older_are_rounded_) {
    next.buckets = std::exchange(old.buckets, acquire(rounded_));
    buffers.save_previous = save_previous(update.from, old);
  } else {
    next.buckets = acquire(whole_);
  }
  for (std::size_t b = 0; b < next.buckets.size(); ++b)
    next.addresses.emplace_back(
      bucket_at(next.buckets[b].data(), precision::fp32, update.from + 1, b));
  buffers.to = next.buckets;
  return buffers;
}

/// Returns the work that copies a version to bf16 buffers. Passes that were planned
/// before look up the new address when they run.
std::function<void()> stage_versions::save_previous(int number,
                                                    const held_version& old) {
  return [this, number, old] {
    for (std::size_t b = 0; b < held_buckets_.size(); ++b) {
      auto* const to = old.buckets[b].data();
      round_bucket(held_buckets_[b].owner->parameters(), old.addresses[b].now().data,
                   to, stream_);
      old.addresses[b].move_to(bucket_at(to, precision::bf16, number, b));
    }
  };
}

void stage_versions::keep_only(const stage_version_ledger& ledger) {
  std::erase_if(versions_, [&](const auto& v) { return !ledger.knows(v.first); });
}

parameter_copy stage_versions::copy(int version) {
  struct of_bucket {
    const float* from;
    std::int64_t values;
    float* to;
  };
  parameter_copy result{acquire(snapshots_), {}};
  std::vector<of_bucket> copies;
  for (std::size_t b = 0; b < result.to.size(); ++b)
    copies.push_back({whole(version)[b].data(), values_[b], result.to[b].data()});
  result.run = [copies = std::move(copies)] {
    for (const auto& bucket : copies)
      arrays<float>::copy(bucket.from, bucket.values, bucket.to);
  };
  return result;
}

} // namespace troupe
