// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/pipeline/weight_versions.hpp"
#include "actors/rank/rank_memory.hpp"
#include "kernels/pool.hpp"
#include "plan/layout.hpp"
#include "plan/stage_pools.hpp"

#include <map>
#include <memory>
#include <vector>

namespace troupe {

/// One pool for each bucket of a stage.
using bucket_pools = std::vector<std::unique_ptr<pool>>;

/// Returns a pool of `count` buffers for each bucket; `sizes` in 4-byte values, by
/// bucket.
/// \param account outlives the pools
bucket_pools pools_by_bucket(const std::string& name, int count,
                             const std::vector<std::int64_t>& sizes,
                             memory_account& account);

/// Returns one free buffer of each pool.
/// \throws std::logic_error if a pool has none
std::vector<buffer> acquire(const bucket_pools& pools);

/// The weight versions of a stage. Where a run stores bf16 and stages hold whole
/// parameters (rounds_older_versions()), updates write the newest version in
/// place. If older passes still read this version, the update first saves a copy with
/// the matrices of products as bf16. Products round matrices to bf16 in any case, so
/// the copy changes no result. The newest version is the fp32 master copy of
/// Micikevicius et al., "Mixed Precision Training", 2018, section 3.1. In all other
/// runs every version is stored as fp32. There an update writes the next version in
/// place if no pass reads the newest version any more, else to other buffers.
class stage_versions : public weight_versions {
public:
  /// Stores version 0, and the older versions with which a resumed run begins.
  /// \param compute_stream stream of the stage's device; outlives the versions
  /// \param sizes number and sizes of the pools' buffers
  /// \param memory accounts of the rank; outlives the versions
  /// \pre plan.work
  stage_versions(const run_plan& plan, position where, const stage_pools& sizes,
                 rank_memory& memory, stream& compute_stream);

  stage_versions(const stage_versions&) = delete; // works of updates hold `this`
  stage_versions& operator=(const stage_versions&) = delete;

  /// The address of a bucket of a version; the reference is valid while the version is
  /// stored. Passes look up the address at run time, since a version may move.
  /// \throws std::out_of_range if the version is not stored
  const weight_place<float>& address(int version, std::size_t bucket) const {
    return versions_.at(version).addresses[bucket];
  }

  /// The buffers of a version in fp32, by bucket; the reference is valid while the
  /// version is stored.
  /// \pre the version is the newest, or all are fp32
  /// \throws std::out_of_range if the version is not stored
  const std::vector<buffer>& whole(int version) const {
    return versions_.at(version).buckets;
  }

  // Functions with a version throw std::out_of_range if the version is not stored.
  std::vector<buffer> parameters(int version) const override { return whole(version); }
  std::vector<weight_bucket<float>> stored(int version) const override;
  update_buffers prepare_update(const update_facts& update) override;
  void keep_only(const stage_version_ledger& ledger) override;
  parameter_copy copy(int version) override;

  /// Number of a bucket's parameter values that the stage holds.
  std::int64_t values_of(std::size_t bucket) const { return values_[bucket]; }

private:
  struct held_version {
    std::vector<buffer> buckets;
    std::vector<weight_place<float>> addresses;
  };

  void fill(int number, const run_plan& plan, const weight_source& source);
  weight_bucket<float> bucket_at(const float* where, precision matrices, int version,
                                 std::size_t bucket);
  std::function<void()> save_previous(int number, const held_version& old);

  stream& stream_;
  bool older_are_rounded_;
  std::vector<layer_bucket> held_buckets_;
  std::vector<std::int64_t> firsts_, values_; // by bucket: first index, number held
  bucket_pools whole_, rounded_, snapshots_;
  std::vector<tensor_memory> packed_memory_;
  std::vector<std::vector<int>> packed_versions_; // by bucket: of each packed copy
  std::map<int, held_version> versions_;
};

} // namespace troupe
