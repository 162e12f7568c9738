// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "messaging/collective.hpp"
#include "messaging/group_calls.hpp"

#include <functional>
#include <map>
#include <optional>
#include <utility>
#include <vector>

// The collectives of one member of a group of ranks, several of which may run at the
// same time.

namespace troupe {

/// One member's part in the collectives of a group, several of which may be under way.
/// All members begin the same collectives with the same instance numbers, but not
/// necessarily at the same time. Messages for a collective that has not begun here are
/// stored. For one thread at a time.
class collectives_under_way {
public:
  /// Requests the computation of a sum that a collective has stopped at, or the GPU
  /// work of a collective. The receiver of the request calls end_sum() when the sum or
  /// the work has ended, never before the request returns.
  using sum_requester = std::function<void(int instance, collective_sum sum)>;

  /// Hands all sums of values in messages to `request` from now on. Without this call,
  /// begin() and receive() compute each sum immediately.
  /// \pre none()
  void yield_sums(sum_requester request) { request_ = std::move(request); }

  /// Returns the group whose GPUs exchange the arrays of an instance; null if messages
  /// carry the arrays.
  using group_finder = std::function<gpu_group*(int instance)>;

  /// Lets GPUs exchange the arrays of the instances for which `groups` returns a group.
  /// The GPU work of an instance is handed to `request` like a sum.
  /// \param groups the returned groups outlive this object
  /// \pre none()
  void exchange_by(group_finder groups, sum_requester request) {
    groups_ = std::move(groups);
    launch_ = std::move(request);
  }

  /// Begins a collective over the part's array. Returns the messages to send now.
  /// \param memory empty where nothing is computed; the arrays and the pool outlive the
  /// collective
  /// \pre the instance is not under way
  /// \throws std::logic_error in the cases of collective's constructor, begin() and
  /// receive(), and of group_calls::begin()
  std::vector<collective_message> begin(const collective_part& part,
                                        collective_memory memory);

  /// Handles a message of another member. Returns the messages to send now.
  /// \throws std::logic_error in the cases of collective::receive() and
  /// group_calls::receive()
  std::vector<collective_message> receive(collective_message message);

  /// Reports the end of a collective's sum, or of the collective's GPU work. Returns
  /// the messages to send now; none after GPU work.
  /// \pre the sum or the GPU work of `instance` has been requested, and its end has not
  /// been reported
  /// \throws std::logic_error if the pool is empty, or if a stored message is invalid
  std::vector<collective_message> end_sum(int instance);

  /// True if the instance has begun here and is not done.
  bool is_under_way(int instance) const;
  /// True if no collective is under way. Stored messages do not count.
  bool none() const;

  /// True while a collective waits for the end of a sum, or while GPUs exchange arrays.
  bool sums() const;

  /// A collective that waits for a message or a call, and the member that has not sent
  /// the message or call.
  struct missing {
    int instance;
    int from;
  };
  /// Returns the missing message of the lowest instance that waits for one. If there is
  /// none, returns a missing call of a group; absent if no call is missing.
  std::optional<missing> waits_for() const;

private:
  void look_at(int instance);
  group_calls* calls_of(int instance);
  void launch_next(group_calls& calls);

  sum_requester request_;
  sum_requester launch_;
  group_finder groups_;
  std::map<gpu_group*, group_calls> calls_;
  std::map<int, collective> running_; // by instance
  std::map<int, std::vector<collective_message>> early_;
};

} // namespace troupe
