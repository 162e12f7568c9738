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

/// The cost of an action: virtual devices compute time from the cost, and the stall
/// watchdog reads the operations.
struct charge {
  double operations = 0; ///< Floating-point operations of all pieces.
  /// Cost relative to a whole action of this kind with the largest microbatch.
  double size = 1;
  /// Works whose costs the action pays in addition. The first action of a pair pays for
  /// the second action, which then costs nothing. A backward pays for recomputed
  /// segments.
  std::vector<work_key> also = {};
};

/// Callbacks of an action, called on a thread of the device; each may be empty.
struct action_callbacks {
  /// Called for each bucket of gradients, by the bucket's index in the stage, when the
  /// piece that completes the bucket has run.
  std::function<void(int bucket)> bucket = {};
  /// Called when the last work of the action has been launched on a GPU; never on a
  /// CPU.
  on_launched launched = {};
};

/// Runs one action: returns the next work for the device, or names the meeting that the
/// action waits for.
///
///   begin ── can_resume? ──yes── next_work ── (a device) ── end_work ──▶ ended?
///               no ◀─────────────────────────────────────────── no
class piece_cursor {
public:
  /// \param meetings the meetings outlive this object
  explicit piece_cursor(meeting_list meetings) : meetings_(meetings) {
    // nop
  }

  /// Begins an action; runs nothing. Returns the messages of the meetings that begin
  /// with the action.
  /// \pre !under_way()
  meeting_messages begin(const action& a, const charge& cost, woven_action woven,
                         action_callbacks callbacks = {});

  /// True from begin() until the action's last work has ended.
  bool under_way() const { return at_work_ || has_more(); }
  bool at_work() const { return at_work_; } ///< Between next_work() and end_work().

  /// The action under way, or the last action if none is.
  /// \pre begin() has been called
  const action& current_action() const { return action_; }

  /// True if the next piece can start: all meeting steps that the piece needs are over,
  /// and the piece need not yield to another action first. A call of resumes() after
  /// pause() ends the need to yield.
  /// \pre under_way(), and not at_work()
  bool can_resume() const;

  /// Returns work with the next pieces. The work ends before a piece that needs or
  /// begins a meeting. The work also ends after a piece that ends in a meeting or has
  /// flags for the record.
  /// \param out set to the messages of the meetings that begin with that work
  /// \pre can_resume()
  work next_work(meeting_messages& out);

  /// Notes that the work has ended. Returns the messages of the meetings that begin
  /// with this end.
  /// \pre at_work()
  meeting_messages end_work();

  /// Returns flags of `part_end` for the record, which say how the last work ended. A
  /// second call returns `nothing`.
  std::uint8_t take_end() { return std::exchange(end_, std::uint8_t{nothing}); }

  /// pause() marks the action as paused, and waits() returns the mark. If the mark is
  /// set and the next piece needs no open meeting, resumes() clears the mark and
  /// returns true. While the mark is set, resumes() ends the next piece's need to
  /// yield.
  void pause() { waits_ = true; }
  bool waits() const { return waits_; }
  bool resumes();

  /// The missing peer of the first open meeting that the next piece needs. Absent if
  /// these meetings are all over, or no piece is left.
  std::optional<missing_peer> waits_for() const;

private:
  bool has_more() const { return next_ < pieces_.size(); }
  meeting_messages begin(const meeting_steps& steps);
  bool is_over(const meeting_step& a) const {
    return meetings_.meeting_of(a.kind).is_done(a.index);
  }
  bool whole_action(const piece& p) const { return p.share == 1 && !callbacks_.bucket; }
  bool stops_before(std::size_t piece) const;
  void add(work& to, piece& p) const;

  action action_{};
  bool at_work_ = false;
  bool waits_ = false;
  std::uint8_t end_ = nothing;
  // flags of the work on the device; become end_ when the work ends
  std::uint8_t ending_ = nothing;
  meeting_steps ends_in_;     // meetings that begin when the work on the device ends
  std::vector<piece> pieces_; // empty once the last piece is on the device
  std::size_t next_ = 0;
  charge cost_;
  double done_ = 0; // share of the action's work that is done
  std::vector<std::shared_ptr<gpu_completion>> inputs_; // of the action's first work
  action_callbacks callbacks_;
  meeting_list meetings_;
};

} // namespace troupe
