// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/meetings/collective_meeting.hpp"
#include "kernels/pool.hpp"
#include "messaging/replica_exchange.hpp"
#include "plan/layout.hpp"

#include <memory>
#include <optional>
#include <set>
#include <vector>

// The meeting of data replicas that sums gradients, or gathers parameters, bucket by
// bucket.

namespace troupe {

/// The buffers of messages between data replicas, which carry copies of a stage's
/// buckets: one pool per bucket. An object serves the messages of one exchange_step.
class exchange_pools {
public:
  /// \param account pays for the pools; outlives this object
  exchange_pools(const run_plan& plan, position where, exchange_step step,
                 memory_account& account);

  /// The pool of a bucket; valid as long as this object.
  pool* pool_of(int bucket) const {
    return pools_[static_cast<std::size_t>(bucket)].get();
  }

private:
  std::vector<std::unique_ptr<pool>> pools_;
};

/// The meeting of a stage's data replicas that exchange buckets in each update. With
/// exchange_step::sum the replicas sum the gradients of each bucket. The sums of the
/// last layers may then run while the first layers still compute. With
/// exchange_step::gather the replicas gather a version of which each replica has made a
/// share. In a sum, begin() takes the index of a bucket; one step gathers all buckets.
/// Where GPUs sum, a bucket starts only after all buckets of higher indexes. Every step
/// is over when all buckets of the update have been exchanged.
class bucket_meeting : public collective_meeting {
public:
  /// Index of the step that gathers all buckets, and of the wait for all sums.
  static constexpr int all_buckets = 0;

  /// \param plan outlives the meeting
  /// \param pools of the same `step`; null where nothing is computed
  bucket_meeting(const run_plan& plan, position where, exchange_step step,
                 std::shared_ptr<exchange_pools> pools);

  /// Sets the array of this data replica's values of a bucket. Called before begin() of
  /// the bucket's step. The array has the whole bucket. The meeting reads and writes
  /// the array until the step is over.
  /// \param values null where nothing is computed
  void expect(int bucket, float* values) {
    arrays_[static_cast<std::size_t>(bucket)] = values;
  }

  meeting_messages begin(int index) override;

  /// True if all buckets of this update have been exchanged. Before the first begin()
  /// of an update the result is false.
  bool is_done(int) const override { return done_ == buckets(); }

  /// Number of the stage's buckets.
  int buckets() const { return static_cast<int>(values_.size()); }

  /// The next begin() belongs to the next update.
  /// \pre is_done()
  void next_update();

private:
  meeting_messages begin_bucket(int bucket);
  position member_at(int instance, int member) const override;
  traffic traffic_of(int instance) const override;
  missing_peer missing_from(int instance, position sender) const override;
  std::vector<int> strides() const override;
  void ended(int /*instance*/) override { ++done_; }

  exchange_step step_;
  std::vector<bucket_group> groups_;           // of each bucket
  std::vector<std::int64_t> values_;           // of each bucket
  std::vector<float*> arrays_;                 // of each bucket
  std::vector<std::unique_ptr<codec>> coders_; // of each bucket
  std::shared_ptr<exchange_pools> pools_;
  bool odd_update_ = false; // separates messages of two updates under way
  int done_ = 0;
  // GPUs launch the sums in the same order on all ranks, from the last bucket to the
  // first. A bucket that is complete before its turn waits.
  int started_buckets_ = 0;     // of this update
  std::set<int> ready_buckets_; // complete buckets that wait for their turn
};

} // namespace troupe
