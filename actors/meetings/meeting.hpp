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
  std::string input;          ///< The input that the meeting waits for.
  std::string peer;           ///< Name of the missing actor; empty if there is none.
  std::string user_code = {}; ///< The text of mail::waiting_for::user_code.
};

/// A sum that a member of a meeting has stopped at, as a request to the member's
/// device. At the end of the sum the meeting receives a message (mail::sum_over) with
/// the number.
struct requested_sum {
  meeting_kind meeting;
  int number;
  collective_sum sum;
};

using sum_requester = std::function<void(requested_sum sum)>;

/// Finds a member's end of a group of GPUs that exchange the arrays of a meeting
/// themselves. Members are `stride` data replicas apart. Null: messages carry the
/// arrays.
using group_finder = std::function<gpu_group*(meeting_kind meeting, int stride)>;

/// The answer of a member that waits for its own sum.
inline missing_peer unfinished_sum() {
  return {"its sum to be done", ""};
}

/// An exchange with other ranks that an action needs before the action's next piece.
/// Examples: tensor shards sum, data replicas share a layer out, experts compute rows,
/// optimizer shards compute a norm. Each member of a meeting has an object of its own,
/// which lives as long as the member. A meeting has steps; pieces of actions
/// (weave.hpp) name a step by an index, which each kind of meeting defines. All members
/// begin the same steps in the same order, but not at the same time: a message may
/// arrive early.
///
/// Meetings do not use actors. One thread at a time calls a meeting.
class meeting {
public:
  virtual ~meeting() = default;

  /// This member begins a step. Returns the messages to other members.
  virtual meeting_messages begin(int index) = 0;

  /// Handles a message of another member. Returns the answers.
  virtual meeting_messages receive(mail::meeting_message received) = 0;

  /// True if this member need not wait at a step.
  /// \pre the step has begun, or no step has
  virtual bool is_done(int index) const = 0;

  /// The peer that the meeting waits for; absent if the meeting waits for none.
  virtual std::optional<missing_peer> waits_for() const = 0;

  /// Hands all sums to the device from now on; otherwise a meeting computes sums
  /// immediately. Meetings without sums never request any.
  /// \pre no step has begun
  virtual void yield_sums(const sum_requester&) {}

  /// Lets GPUs exchange arrays where possible. A meeting requests such an exchange like
  /// a sum.
  /// \pre no step has begun
  virtual void exchange_by(const group_finder&, const sum_requester&) {}
};

/// The meetings of one performer, by kind; null where the performer has none. Not
/// owned.
class meeting_list {
public:
  meeting*& operator[](meeting_kind kind) {
    return by_kind_[static_cast<std::size_t>(kind)];
  }
  meeting& meeting_of(meeting_kind kind) const {
    return *by_kind_[static_cast<std::size_t>(kind)];
  }

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
