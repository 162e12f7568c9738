// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/meetings/meeting.hpp"
#include "actors/plan/run_plan.hpp"
#include "kernels/pool.hpp"
#include "messaging/collectives_under_way.hpp"

#include <memory>
#include <optional>
#include <set>
#include <vector>

namespace troupe {

/// Where copies of a stage's buckets travel between data replicas: a pool a bucket.
class exchange_pools {
public:
  exchange_pools(const run_plan& plan, position where, exchange_step step,
                 memory_account& account);

  pool* of(int bucket) const { return pools_[static_cast<std::size_t>(bucket)].get(); }

  /// Values that they take in all.
  static std::int64_t values(const run_plan& plan, position where, exchange_step step);

private:
  std::vector<std::unique_ptr<pool>> pools_;
};

/// Data replicas of a stage, update by update: they sum the gradients of each bucket,
/// so that those of the last layers are on their way while the first are still made; or
/// they gather a version that each has made its share of. An occasion of the sum is a
/// bucket; the gathering of all buckets is one. Both are over when all buckets of the
/// update are.
class bucket_meeting : public meeting {
public:
  static constexpr int all = 0; ///< The occasion at which all buckets are gathered.

  /// \param plan outlives it \param pools null where nothing is computed
  bucket_meeting(const run_plan& plan, position where, exchange_step step,
                 std::shared_ptr<exchange_pools> pools);

  /// Where this data replica's values of a bucket stand. They belong to the meeting
  /// until it is over.
  void expect(int bucket, float* values) {
    arrays_[static_cast<std::size_t>(bucket)] = values;
  }

  letters begin(int occasion) override;
  letters take(mail::letter what) override;

  /// Whether all buckets of this update are exchanged. What has not begun is not over.
  bool over(int) const override { return done_ == buckets(); }

  int buckets() const { return static_cast<int>(values_.size()); }

  /// The next begin() belongs to the next update. \pre over()
  void next_update();

  std::optional<absence> waits_for() const override;
  void yield_sums(const sum_asker& ask) override;
  void exchange_by(const group_finder& groups, const sum_asker& ask) override;

private:
  meeting_kind kind() const {
    return step_ == exchange_step::sum ? meeting_kind::sums : meeting_kind::gathers;
  }
  letters begin_bucket(int bucket);
  letters sent(int instance, std::vector<collective_message> out) const;
  int replica_of(int instance, int member) const;

  const run_plan* plan_;
  position where_;
  exchange_step step_;
  std::vector<bucket_group> groups_; // of each bucket
  std::vector<std::int64_t> values_; // of each bucket
  std::vector<float*> arrays_;       // of each bucket
  std::shared_ptr<exchange_pools> pools_;
  bool odd_update_ = false; // no more than two can be under way
  int done_ = 0;
  // GPUs come to sums in one order everywhere, from the last bucket to the first. Those
  // that are complete before their turn wait for it.
  bool in_turn_ = false;
  int begun_ = 0;      // of this update
  std::set<int> come_; // buckets
  collectives_under_way under_way_;
};

} // namespace troupe
