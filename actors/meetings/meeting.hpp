// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "messaging/collective.hpp"
#include "messaging/group_calls.hpp"
#include "messaging/mail/letters.hpp"

#include <array>
#include <functional>
#include <optional>
#include <string>

// The interface of meetings: exchanges with other ranks between the pieces of an
// action.

namespace troupe {

/// The reason why a meeting waits, as text.
struct absence {
  std::string what;     ///< The input that the meeting waits for.
  std::string whom;     ///< Name of the missing actor; empty if there is none.
  std::string own = {}; ///< As in mail::waiting_for.
};

/// A sum that a member of a meeting has stopped at, as a request to the member's
/// device. At the end of the sum the meeting receives a message (mail::sum_over) with
/// the number.
struct asked_sum {
  meeting_kind about;
  int number;
  collective_sum what;
};

using sum_asker = std::function<void(asked_sum what)>;

/// Finds a member's end of a group of GPUs that exchange the arrays of a meeting
/// themselves. Members are `stride` data replicas apart. Null: messages carry the
/// arrays.
using group_finder = std::function<gpu_group*(meeting_kind about, int stride)>;

/// The answer of a member that waits for its own sum.
inline absence own_sum() {
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
  virtual letters begin(int occasion) = 0;

  /// Handles a message of another member. Returns the answers.
  virtual letters take(mail::letter what) = 0;

  /// True if this member need not wait at a step.
  /// \pre the step has begun, or no step has
  virtual bool over(int occasion) const = 0;

  /// The peer that the meeting waits for; absent if the meeting waits for none.
  virtual std::optional<absence> waits_for() const = 0;

  /// Hands all sums to the device from now on; otherwise a meeting computes sums
  /// immediately. Meetings without sums never request any.
  /// \pre no step has begun
  virtual void yield_sums(const sum_asker&) {}

  /// Lets GPUs exchange arrays where possible. A meeting requests such an exchange like
  /// a sum.
  /// \pre no step has begun
  virtual void exchange_by(const group_finder&, const sum_asker&) {}
};

/// The meetings of one performer, by kind; null where the performer has none. Not
/// owned.
class meeting_list {
public:
  meeting*& operator[](meeting_kind kind) {
    return of_[static_cast<std::size_t>(kind)];
  }
  meeting& at(meeting_kind kind) const { return *of_[static_cast<std::size_t>(kind)]; }

  void yield_sums(const sum_asker& ask) const {
    for (auto* const one : of_)
      if (one != nullptr)
        one->yield_sums(ask);
  }

  void exchange_by(const group_finder& groups, const sum_asker& ask) const {
    for (auto* const one : of_)
      if (one != nullptr)
        one->exchange_by(groups, ask);
  }

private:
  std::array<meeting*, meeting_kinds> of_{};
};

} // namespace troupe
