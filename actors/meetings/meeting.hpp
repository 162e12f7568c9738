// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "messaging/collective.hpp"
#include "messaging/group_calls.hpp"
#include "messaging/mail/meeting_messages.hpp"

#include <array>
#include <functional>
#include <optional>
#include <string>

// The interface of meetings: exchanges with other ranks between the pieces of an
// action.

namespace troupe {

/// The reason why a meeting waits, as text.
struct missing_peer {
  std::string input; ///< The input that the meeting waits for.
  /// Name of the missing actor; empty if no actor, or no known one, is missing.
  std::string peer;
  /// A sentence about the user's code that has to proceed first; else empty. The stall
  /// report has the sentence as mail::waiting_for::user_code.
  std::string user_code = {};
};

/// A member's request for work on a device: a sum that the meeting waits for, or the
/// launch of an exchange between GPUs. When the work has ended, the meeting receives
/// mail::sum_over with `number`, the meeting's own number of the work.
struct requested_sum {
  meeting_kind meeting;
  int number;
  collective_sum sum;
};

using sum_requester = std::function<void(requested_sum sum)>;

/// Returns the caller's end of the group of GPUs that exchange the arrays of a meeting
/// themselves; null if messages carry the arrays. The end outlives the meeting.
/// \param stride number of data replicas from one member to the next; 1 for tensor
/// shards
using group_finder = std::function<gpu_group*(meeting_kind meeting, int stride)>;

/// The result of meeting::waits_for() while a member waits for the end of its own sum,
/// or of an exchange between GPUs.
inline missing_peer unfinished_sum() {
  return {"the end of its sum", ""};
}

/// An exchange with other ranks that an action needs before the action's next piece.
/// Examples: tensor shards sum, data replicas gather a layer's shards, experts compute
/// rows, optimizer shards compute a norm. Each member of a meeting has an object of its
/// own, which lives as long as the member. A meeting has steps. A piece of an action
/// (weave.hpp) names a step by an index, whose meaning each kind of meeting defines.
/// All members begin the same steps, but not at the same time. A message may therefore
/// arrive before the receiver begins the message's step. The order of steps is equal in
/// all members, except for the sums of a bucket_meeting.
///
/// Meetings do not use actors. One thread at a time calls a meeting.
class meeting {
public:
  virtual ~meeting() = default;

  /// Begins a step on this member. Returns the messages to send.
  virtual meeting_messages begin(int index) = 0;

  /// Handles a message of a member, or the end of a requested sum (mail::sum_over).
  /// Returns the messages to send.
  /// \throws std::logic_error for an invalid message, if the kind of meeting checks
  /// messages
  /// \throws the error of a requested sum that has failed
  virtual meeting_messages receive(mail::meeting_message received) = 0;

  /// True if this member need not wait at a step.
  /// \pre this member has begun this step, or no step at all; steps of a
  /// direction_meeting need no call of begin()
  virtual bool is_done(int index) const = 0;

  /// The input and the peer that the meeting waits for; absent if the meeting does not
  /// wait.
  virtual std::optional<missing_peer> waits_for() const = 0;

  /// Sets a function by which the meeting requests each sum from the device. Without
  /// this call a meeting computes sums immediately. Bucket, layer, tensor and tie
  /// meetings use the function; other meetings ignore the call. Tie meetings request
  /// only the time of a sum, and compute in add(). Objects to which the function refers
  /// outlive the meeting.
  /// \pre no step has begun
  virtual void yield_sums(const sum_requester&) {}

  /// Lets GPUs exchange the meeting's arrays, where the first function finds a group.
  /// The meeting requests the launch of an exchange by calls of the second function.
  /// Bucket, layer and tensor meetings use the functions; other meetings ignore the
  /// call. Objects to which the functions refer outlive the meeting.
  /// \pre no step has begun
  virtual void exchange_by(const group_finder&, const sum_requester&) {}
};

/// The meetings of one performer, by kind; null for a kind without a meeting. Not
/// owned: the meetings outlive this list.
class meeting_list {
public:
  meeting*& operator[](meeting_kind kind) {
    return by_kind_[static_cast<std::size_t>(kind)];
  }
  /// The meeting of a kind.
  /// \pre the performer has a meeting of this kind
  meeting& meeting_of(meeting_kind kind) const {
    return *by_kind_[static_cast<std::size_t>(kind)];
  }

  // Both functions call the function of the same name of every meeting.
  void yield_sums(const sum_requester& request) const {
    for (auto* const item : by_kind_)
      if (item != nullptr)
        item->yield_sums(request);
  }

  void exchange_by(const group_finder& groups, const sum_requester& request) const {
    for (auto* const item : by_kind_)
      if (item != nullptr)
        item->exchange_by(groups, request);
  }

private:
  std::array<meeting*, meeting_kinds> by_kind_{};
};

} // namespace troupe
