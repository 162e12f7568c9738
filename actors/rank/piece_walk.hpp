// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/meetings/meeting.hpp"
#include "actors/rank/weave.hpp"
#include "kernels/device.hpp"

#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace troupe {

/// What a device charges for an action where time is only counted.
struct charge {
  double operations = 0; ///< Of all its pieces.
  double size = 1;       ///< Of what such an action costs.
  /// What it takes besides: of the first of a pair the second, which takes nothing
  /// then, and segments that a backward recomputes.
  std::vector<work_key> also = {};
};

/// Who is told of an action by its device's callbacks; each may be empty.
struct action_tellers {
  std::function<void(int bucket)> bucket = {}; ///< That is complete.
  on_launched launched = {};                   ///< Of its last work.
};

/// Runs one action: yields its next work, or the meeting that it waits for.
///
///   begin ── can_go_on? ──yes── next_work ── (a device) ── end_work ──▶ ended?
///               no ◀────────────────────────────────────────── no
class piece_walk {
public:
  explicit piece_walk(meeting_list meetings) : meetings_(meetings) {
    // nop
  }

  /// Begins an action.
  /// Returns what the meetings that begin with it write. \pre !under_way()
  letters begin(const action& a, const charge& cost, woven_action what,
                action_tellers tell = {});

  /// Until its last work has ended.
  bool under_way() const { return at_work_ || has_more(); }
  bool at_work() const { return at_work_; } ///< Between next_work() and end_work().

  /// The action under way, or the last.
  const action& what() const { return what_; }

  /// Whether the next piece needs nothing that is not over. \pre under_way(), and not
  /// at_work()
  bool can_go_on() const;

  /// The pieces from the next on, up to one that ends in a meeting or is followed by
  /// one that needs one. \param out gets what the meetings that begin with them write
  /// \pre can_go_on()
  work next_work(letters& out);

  /// That has ended. Returns what the meetings that begin with that write.
  letters end_work();

  /// What its last piece ended in, once, for the record.
  std::uint8_t take_end() { return std::exchange(end_, std::uint8_t{nothing}); }

  /// It has been said to wait; whether it can go on again, once.
  void pause() { waits_ = true; }
  bool waits() const { return waits_; }
  bool resumes();

  /// Who keeps the next piece waiting; absent if nobody does.
  std::optional<absence> waits_for() const;

private:
  bool has_more() const { return next_ < pieces_.size(); }
  letters begin(const appointments& all);
  bool is_over(const appointment& a) const {
    return meetings_.at(a.with).over(a.occasion);
  }
  bool whole_action(const piece& p) const { return p.share == 1 && !tell_.bucket; }
  bool stops_before(std::size_t piece) const;
  void add(work& to, piece& p) const;

  action what_{};
  bool at_work_ = false;
  bool waits_ = false;
  std::uint8_t end_ = nothing;
  std::uint8_t ending_ = nothing; // of what is at work: end_ once it has ended
  appointments ends_in_;          // likewise: begin then
  std::vector<piece> pieces_;     // empty once the last is at work
  std::size_t next_ = 0;
  charge cost_;
  double done_ = 0;                                   // share of its work
  std::vector<std::shared_ptr<launched_end>> inputs_; // of its first work
  action_tellers tell_;
  meeting_list meetings_;
};

} // namespace troupe
