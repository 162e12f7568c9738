// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "messaging/collective.hpp"
#include "messaging/group_calls.hpp"
#include "messaging/mail/letters.hpp"

#include <array>
#include <functional>
#include <optional>
#include <string>

namespace troupe {

/// Who is missing from a meeting, in words.
struct absence {
  std::string what;     ///< That is waited for.
  std::string whom;     ///< The name of another actor; empty if there is none to blame.
  std::string own = {}; ///< As mail::waiting_for says it.
};

/// A sum that a member of a meeting has come to: work for whoever does the member's
/// sums. When it is over, the meeting gets a letter (mail::sum_over) with its number.
struct asked_sum {
  meeting_kind about;
  int number;
  collective_sum what;
};

using sum_asker = std::function<void(asked_sum what)>;

/// Finds a member's end of the group of GPUs that exchange what a meeting is about
/// themselves. Members are `stride` data replicas apart. Null: messages carry it.
using group_finder = std::function<gpu_group*(meeting_kind about, int stride)>;

/// What a member waits for whose own sum is not over.
inline absence own_sum() {
  return {"its sum to be done", ""};
}

/// What an action does with others before it can go on: tensor shards sum, data
/// replicas share a layer out, experts take rows, a norm is found. Each member of a
/// meeting has an object of its own, which lasts as long as the member; pieces of its
/// actions (weave.hpp) name the occasions by number, as each kind of meeting counts
/// them. All members come to the same occasions in the same order, but not at once: a
/// letter may come early.
///
/// No meeting knows actors. One thread at a time calls it.
class meeting {
public:
  virtual ~meeting() = default;

  /// This member comes to an occasion. Returns what it writes to the others.
  virtual letters begin(int occasion) = 0;

  /// A letter of another member. Returns the answers.
  virtual letters take(mail::letter what) = 0;

  /// Whether this member need not wait at an occasion. \pre it has begun, or nothing
  /// has
  virtual bool over(int occasion) const = 0;

  /// Who is missing; absent if nobody is.
  virtual std::optional<absence> waits_for() const = 0;

  /// Sums are somebody else's work from now on; else a meeting does them at once.
  /// Meetings that sum nothing never ask. \pre nothing has begun
  virtual void yield_sums(const sum_asker&) {}

  /// GPUs exchange what they can from now on: one asks for that as for a sum.
  /// \pre nothing has begun
  virtual void exchange_by(const group_finder&, const sum_asker&) {}
};

/// The meetings of one performer, by kind; null where it has none. Not owned.
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
