// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/rank/performer_port.hpp"
#include "actors/rank/piece_cursor.hpp"
#include "messaging/mail/control.hpp"
#include "messaging/mail/turns.hpp"

#include <cstdint>
#include <functional>
#include <string>

namespace troupe {

/// One action of a performer at a time, and the protocol with the scheduler. Runs the
/// action's pieces, asks the scheduler for a new grant after each meeting, and gives
/// work to the device. One thread at a time calls the functions.
class action_run {
public:
  /// Returns the facts of the action under way, such as the version, without times.
  using measure = std::function<measured_action()>;

  /// \param port outlives this object
  /// \param meetings the meetings outlive this object
  action_run(performer_port& port, meeting_list meetings, measure so_far)
    : port_(&port), cursor_(meetings), so_far_(std::move(so_far)) {
    // nop
  }

  /// Begins an action that the scheduler has granted: sends the messages of the
  /// meetings that begin with the action. No piece runs before the call of resume().
  /// \pre !under_way()
  void begin(const action& a, const charge& cost, woven_action woven,
             action_callbacks callbacks = {}) {
    port_->send_all(cursor_.begin(a, cost, std::move(woven), std::move(callbacks)));
  }

  /// True if the action has work on the device, or pieces that are still to run.
  bool under_way() const { return cursor_.under_way(); }

  /// The action under way, or the last action if none is.
  /// \pre begin() has been called
  const action& current_action() const { return cursor_.current_action(); }

  /// The scheduler has granted the action, for the first time or again. Gives the next
  /// pieces to the device, or pauses if a meeting is still open or the next piece
  /// yields.
  /// \pre under_way(), and no work of the action is on the device
  /// \param turn of the work on the device, if the work is the whole action; else
  /// `no_turn`
  void resume(std::int64_t turn = no_turn);

  /// Handles the end of the action's work on the device. Returns true if the whole
  /// action has ended: then the performer sends `done`. Otherwise the action sends
  /// `paused`, and immediately `arrived` if the next piece needs no open meeting.
  bool ended(const mail::ended& e);

  /// Sends `arrived`, once per pause, if the paused action waits for no meeting any
  /// more. No effect if no action is paused. The performer calls poll() when a meeting
  /// may have ended.
  void poll();

  /// Describes the device work or the meeting that the action waits for. Absent if no
  /// action is under way, or if the scheduler has to grant the action. Between the end
  /// of a meeting and poll(), the text names the missing grant.
  /// \param name the name of the performer in the answer
  std::optional<mail::waiting_for> explain(const std::string& name) const;

private:
  void pause(const mail::ended& e);

  performer_port* port_;
  piece_cursor cursor_;
  measure so_far_;
};

} // namespace troupe
