// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/rank/performer_port.hpp"
#include "actors/rank/piece_walk.hpp"
#include "messaging/mail/control.hpp"
#include "messaging/mail/turns.hpp"

#include <cstdint>
#include <functional>
#include <string>

namespace troupe {

/// One action of a performer and what is said about it: walks through its pieces, asks
/// the scheduler for leave after each meeting, and gives the device its work.
class conversation {
public:
  /// Measures the action under way as far as it has come, without its times.
  using measure = std::function<measured_action()>;

  /// \param port outlives it
  conversation(performer_port& port, meeting_list meetings, measure so_far)
    : port_(&port), walk_(meetings), so_far_(std::move(so_far)) {
    // nop
  }

  /// Begins an action that the scheduler has granted.
  void begin(const action& a, const charge& cost, woven_action what,
             action_tellers tell = {}) {
    port_->send_all(walk_.begin(a, cost, std::move(what), std::move(tell)));
  }

  /// Whether its work is with the device, or comes to it.
  bool under_way() const { return walk_.under_way(); }

  /// The action under way, or the last.
  const action& what() const { return walk_.what(); }

  /// The scheduler has granted it, for the first time or again: computes, or pauses.
  /// \param turn of the work, if it is all of the action's
  void go_on(std::int64_t turn = no_turn);

  /// Its work has ended. Returns whether all of it has: then the performer says `done`.
  /// Else it pauses, and arrives again if it need not wait.
  bool ended(nanoseconds start, nanoseconds end);

  /// A meeting may be over: arrives if it waits for nothing any more.
  void look_again();

  /// What it waits for; nothing if no action is under way. \param who says so
  std::optional<mail::waiting_for> explain(const std::string& who) const;

private:
  void pause(nanoseconds start, nanoseconds end);

  performer_port* port_;
  piece_walk walk_;
  measure so_far_;
};

} // namespace troupe
