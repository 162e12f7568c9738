// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/meetings/meeting.hpp"
#include "kernels/pool.hpp"
#include "plan/run_plan.hpp"

#include <deque>
#include <memory>
#include <span>
#include <string>
#include <vector>

// The meeting of data replicas that exchange gradients by the user's own code.

namespace troupe {

/// The name of the user's meeting in a data replica of a stage, for errors and reports.
std::string name_of_user_meeting(int stage, int replica);

/// The description of a data replica, from which the user's function makes an exchange
/// object. Without plan.work the description has no parameters.
exchange_member user_exchange_member(const run_plan& plan, int stage, int replica);

/// The meeting of a stage's data replicas that exchange gradients by an object of the
/// user's. The object receives only messages of the current update, after begin().
/// Messages that arrive before begin() of their update are stored here. Each update has
/// one step, `exchanged`.
class user_meeting : public meeting {
public:
  static constexpr int exchanged = 0;

  /// Makes the user's object.
  /// \param plan outlives the meeting
  /// \pre plan.user_exchange is set, and returns an object
  /// \throws exceptions of plan.user_exchange
  user_meeting(const run_plan& plan, position where);

  /// Sets the gradients of this data replica, one buffer for each of the stage's
  /// buckets. The buffers must outlive the update.
  void expect(const std::vector<buffer>& gradients);

  /// begin() and receive() call the user's object, whose exceptions leave both
  /// functions.
  /// \throws std::logic_error if the object sends a message to a data replica that does
  /// not exist, or to its own
  /// \throws std::logic_error if receive() gets a message of an exchange that has ended
  /// here
  meeting_messages begin(int index) override;
  meeting_messages receive(mail::meeting_message received) override;
  bool is_done(int) const override {
    return started_ && early_.empty() && exchange_->is_done();
  }
  std::optional<missing_peer> waits_for() const override;

  /// The next begin() belongs to the next update.
  /// \pre is_done()
  void next_update();

private:
  meeting_messages sent(std::vector<exchange_message> messages) const;
  meeting_messages take_early();

  const run_plan* plan_;
  position where_;
  std::unique_ptr<user_exchange> exchange_;
  std::vector<std::int64_t> values_; // of each bucket
  std::vector<std::span<float>> gradients_;
  std::deque<mail::user_message> early_; // of this update, before begin()
  std::deque<mail::user_message> later_; // of later updates
  int update_ = 0;
  bool started_ = false;
};

} // namespace troupe
