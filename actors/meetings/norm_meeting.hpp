// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/meetings/meeting.hpp"
#include "plan/run_plan.hpp"

#include <optional>
#include <vector>

namespace troupe {

/// The meeting of optimizer shards whose gradients one norm covers. Each shard sends
/// the sums of squares of its gradients to the first shard. The first shard sums all
/// squares in the group's order, and sends the clipping factor to all shards. Each
/// update has one step.
class norm_meeting : public meeting {
public:
  static constexpr int factor_known = 0;

  /// \param plan outlives the meeting
  /// \pre the optimizer of plan.work clips
  norm_meeting(const run_plan& plan, position where);

  /// Sets this shard's sums of squares, and the number of samples in the sum of
  /// gradients. Called before begin().
  void expect(mail::norm_part part) { local_part_ = std::move(part); }

  meeting_messages begin(int index) override;
  meeting_messages receive(mail::meeting_message received) override;
  bool is_done(int) const override { return factor_.has_value(); }
  std::optional<missing_peer> waits_for() const override;

  /// The clipping factor, by which the gradients are multiplied.
  /// \pre is_done()
  double factor() const { return *factor_; }

  /// The next begin() belongs to the next update.
  void next_update() { factor_.reset(); }

private:
  meeting_messages receive(const mail::norm_part& part);

  const run_plan* plan_;
  std::vector<position> group_;
  mail::norm_part local_part_{};
  bool started_ = false;
  int updates_ = 0; // number of updates begun here
  // number of updates answered, if this shard is the first
  int answered_ = 0;
  std::vector<std::optional<mail::norm_part>> parts_; // one per member of the group
  std::optional<double> factor_;
};

} // namespace troupe
