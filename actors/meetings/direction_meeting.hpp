// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/meetings/meeting.hpp"
#include "actors/plan/run_plan.hpp"

#include <functional>
#include <optional>
#include <vector>

namespace troupe {

/// The directions of a schedule at one optimizer shard: all give it their gradients for
/// an update, and it makes one version for all. It stands on the rank of the first
/// direction; to the others the version travels. A schedule of one direction meets
/// nobody else here, but its stage gives its gradients in the same way.
class direction_meeting : public meeting {
public:
  static constexpr int all_gradients = 0; ///< Of all directions.
  static constexpr int version = -1;      ///< To begin: the version goes to the others.
  /// Direction `d` has the version.
  static int version_at(int d) { return d; }

  /// Hears of a bucket that all directions have completed: their gradients, in order.
  using bucket_complete =
    std::function<letters(int bucket, const std::vector<buffer>& of_directions)>;

  /// \param plan outlives it \param told may be empty
  direction_meeting(const run_plan& plan, position where, bucket_complete told);

  letters begin(int occasion) override;
  letters take(mail::letter what) override;
  bool over(int occasion) const override;
  std::optional<absence> waits_for() const override;

  int count() const { return static_cast<int>(parts_.size()); }

  /// A direction's part of the update. \pre over(all_gradients), or it has come
  const mail::update_request& of(int direction) const {
    return *parts_[static_cast<std::size_t>(direction)];
  }
  mail::update_request& of(int direction) {
    return *parts_[static_cast<std::size_t>(direction)];
  }

  /// All directions have the version.
  void next_update();

private:
  letters take(const mail::bucket_ready& part);

  /// The gradients of a bucket that directions have completed.
  struct ready_bucket {
    int count = 0;
    std::vector<buffer> of; // a direction each
  };

  const run_plan* plan_;
  position where_;
  bucket_complete told_;
  std::vector<std::optional<mail::update_request>> parts_; // a direction each
  std::vector<bool> has_version_;                          // likewise
  std::vector<ready_bucket> ready_;
  std::size_t complete_buckets_ = 0;
  std::int64_t version_bytes_ = 0;
};

} // namespace troupe
