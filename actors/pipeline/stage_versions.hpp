// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/pipeline/stage_pools.hpp"
#include "actors/pipeline/stage_work.hpp"
#include "actors/rank/rank_memory.hpp"
#include "kernels/pool.hpp"

#include <map>
#include <memory>
#include <vector>

namespace troupe {

/// A pool a bucket.
using bucket_pools = std::vector<std::unique_ptr<pool>>;

bucket_pools pools_a_bucket(const std::string& what, int count,
                            const std::vector<std::int64_t>& sizes,
                            memory_account& account);

std::vector<buffer> acquire(const bucket_pools& pools);

/// The versions of a stage's parameters. In fp32 each is whole, and an update makes the
/// next one of the newest. Where a run stores bf16 the newest is the one that updates
/// write, always in place; before that what older passes still read of it is put aside,
/// its matrices of products as bf16: the bits that products read anyway (Micikevicius
/// et al., "Mixed Precision Training", 2018, section 3.1, keep one fp32 master copy).
class stage_versions {
public:
  /// \param on the device of the stage \param sizes,memory of the pools
  stage_versions(const run_plan& plan, position where, const stage_pools& sizes,
                 rank_memory& memory, stream& on);

  stage_versions(const stage_versions&) = delete; // its places know where it is
  stage_versions& operator=(const stage_versions&) = delete;

  /// Where passes find a bucket of a version, whenever they run.
  const weight_place<float>& place(int version, std::size_t bucket) const {
    return versions_.at(version).places[bucket];
  }

  /// \pre the version is the newest, or all are fp32
  const std::vector<buffer>& whole(int version) const {
    return versions_.at(version).buckets;
  }

  /// The buckets of a version as they are stored. \pre no update is under way
  std::vector<weight_bucket<float>> stored(int version) const;

  /// Room for the next version.
  update_room make_room(const update_facts& update);

  /// Drops versions that the books no longer know.
  void keep_only(const stage_ledger& books);

  /// A copy of a version, and the work that makes it. \pre as whole()
  parameter_copy copy(int version);

  /// Values of a bucket's parameters that the stage holds.
  std::int64_t values_of(std::size_t bucket) const { return values_[bucket]; }

private:
  struct held_version {
    std::vector<buffer> buckets;
    std::vector<weight_place<float>> places;
  };

  void fill(int number, const run_plan& plan, const weight_source& source);
  weight_bucket<float> bucket_at(const float* where, precision matrices, int version,
                                 std::size_t bucket);
  std::function<void()> put_aside(int number, const held_version& old);

  stream& on_;
  bool older_are_rounded_;
  std::vector<layer_bucket> held_buckets_;
  std::vector<std::int64_t> firsts_, values_; // of each bucket: what is held of it
  bucket_pools whole_, rounded_, snapshots_;
  std::vector<tensor_memory> packed_rooms_;
  std::vector<std::vector<int>> packed_holds_; // versions, a bucket each
  std::map<int, held_version> versions_;
};

} // namespace troupe
