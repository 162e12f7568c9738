// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/meetings/meeting.hpp"
#include "messaging/position.hpp"

#include <functional>
#include <optional>
#include <vector>

namespace troupe {

struct run_plan;

/// The meeting of all directions of a schedule at one optimizer shard. All directions
/// send gradients for an update, and the shard makes one version for all. The shard is
/// on the rank of the first direction. A message without values to the rank of each
/// other direction takes the time of the version's transfer. In a schedule of one
/// direction only one stage sends gradients.
class direction_meeting : public meeting {
public:
  /// Index of the step that waits for all directions.
  static constexpr int all_gradients = 0;
  /// Index of the step that sends the version. Valid only in begin(): is_done() accepts
  /// only all_gradients and version_at().
  static constexpr int version = -1;
  /// Index of the step that waits until direction `d` has the version.
  /// \pre 0 < d < count()
  static int version_at(int d) { return d; }

  /// Called for a bucket that all directions have completed, with the gradients of each
  /// direction, in order. Returns messages to send. receive() makes the call, but only
  /// if reports_buckets().
  using bucket_complete = std::function<meeting_messages(
    int bucket, const std::vector<buffer>& of_directions)>;

  /// \param plan outlives the meeting
  /// \param on_complete may be empty; objects to which the function refers outlive the
  /// meeting
  direction_meeting(const run_plan& plan, position where, bucket_complete on_complete);

  meeting_messages begin(int index) override;
  meeting_messages receive(mail::meeting_message received) override;
  bool is_done(int index) const override;
  std::optional<missing_peer> waits_for() const override;

  /// Number of directions.
  int count() const { return static_cast<int>(parts_.size()); }

  /// A direction's request for the update; valid until next_update().
  /// \pre is_done(all_gradients), or this request has arrived
  const mail::update_request& request_of(int direction) const {
    return *parts_[static_cast<std::size_t>(direction)];
  }
  mail::update_request& request_of(int direction) {
    return *parts_[static_cast<std::size_t>(direction)];
  }

  /// Prepares for the next update, to which later messages belong. To be called when
  /// all directions have the version.
  void next_update();

private:
  meeting_messages receive(const mail::bucket_ready& part);

  /// The gradients of a bucket that some directions have completed.
  struct ready_bucket {
    int count = 0;
    std::vector<buffer> gradients; // one per direction
  };

  const run_plan* plan_;
  position where_;
  bucket_complete on_complete_;
  std::vector<std::optional<mail::update_request>> parts_; // one per direction
  std::vector<bool> has_version_;                          // one per direction
  std::vector<ready_bucket> ready_;
  std::size_t complete_buckets_ = 0;
  std::int64_t version_bytes_ = 0;
};

} // namespace troupe
