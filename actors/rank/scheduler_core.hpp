// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "messaging/mail/control.hpp"
#include "messaging/mail/turns.hpp"
#include "plan/run_plan.hpp"
#include "schedules/order.hpp"
#include "schedules/waiting.hpp"

#include <memory>
#include <optional>
#include <vector>

namespace troupe {

/// A scheduler without a mailbox: the order of the rank, the actions that have arrived,
/// and the actions that the device runs. Uses no actors; one thread at a time calls a
/// scheduler core.
class scheduler_core {
public:
  /// \param rank absent if the device follows no program, as a parameter server's
  /// device: each action that arrives is granted
  /// \param depth number of actions that the device accepts at the same time. While an
  /// action runs, another one is granted only if both are passes, the rank's passes
  /// have no meetings, and has_choice() is false
  scheduler_core(std::shared_ptr<const run_plan> plan, std::optional<int> rank,
                 int depth);

  void handle(const mail::arrived& a);

  /// \pre is_in_turn(d)
  void handle(const mail::done& d);

  /// True if the ended action has no turn, or all actions with earlier turns have ended
  /// here. Two stages may report ends in any order; the record keeps the device's
  /// order.
  bool is_in_turn(const mail::done& d) const;

  /// The granted action has stopped, for a meeting or to let another action of the rank
  /// run first. The action arrives again later.
  void handle(const mail::paused& p);

  /// An action, the performer that runs it, and the turn in which the device starts it.
  struct granted {
    action granted_action;
    performer receiver;
    std::int64_t turn = no_turn; ///< `no_turn` for an action that is granted alone.
    /// The second action of a pair, if `granted_action` is the first.
    std::optional<action> pair = {};
  };

  /// Returns the next action to grant, and counts that action as running. Absent while
  /// held, and if no action is ready or may start now. Actions of experts and parameter
  /// servers go first, because stages wait for each.
  std::optional<granted> grant();

  /// True if a grant depends on all actions that have arrived: under a local rule, and
  /// while an update is paused, because a paused update goes before the program. False
  /// without a rank.
  bool has_choice() const {
    return rank_ && (plan_->sch.local_rule() || !paused_updates_.empty());
  }

  /// Grants nothing more until `mail::resume`.
  void hold() { held_ = true; }

  /// Until `mail::stop_after`, no stage of the rank starts more updates than the stage
  /// that has started most; a local rule admits no more microbatches. Returns the rank,
  /// and that number of updates (a local rule: microbatches admitted; 0 on a rank
  /// without stage 0).
  /// \pre the scheduler has a rank
  mail::started freeze() { return {*rank_, order_->freeze()}; }

  /// Ends the run after `count` updates of each stage; under a local rule, after
  /// `count` microbatches.
  /// \pre freeze() was called, and `count` is at least the number in freeze()'s result
  void handle(const mail::stop_after& s) { order_->stop_after(s.count); }

  /// Ends a hold, and notes the number of evaluations that have been done.
  void handle(const mail::resume& p);

  /// The number of batches that this rank has finished in this run, if the rank waits
  /// for a checkpoint; else absent.
  std::optional<int> at_checkpoint();
  /// Ends the wait, and sets the next checkpoint.
  void handle(const mail::resume_from_checkpoint&);

  /// True if hold() is in force and no granted action runs.
  bool at_rest() const { return held_ && running_ == 0; }

  /// True if the order has no more actions for the rank, also after an early end, and
  /// none runs. Always false for a device without a program.
  bool finished() { return rank_ && running_ == 0 && order_->finished(); }

  /// The input or action that the scheduler waits for, in words. `input` is empty if
  /// the scheduler has finished; all texts are empty without a rank.
  mail::waiting_for explain();

private:
  bool has_capacity() const;
  bool ahead_of_evaluations() const;
  std::optional<action> next_by_order();
  void begin(const action& a);
  performer performer_of(const action& a) const;
  position position_of(const action& a) const;

  std::shared_ptr<const run_plan> plan_;
  std::optional<int> rank_;
  int depth_;
  int running_ = 0;
  bool held_ = false;
  bool passes_meet_ = false;
  // Each evaluation needs a copy of the parameters; a rank waits when no copy is left.
  int evaluated_stage_ = -1; ///< The highest stage here in direction 0; -1: none.
  /// Number of backwards from one evaluation to the next; 0: no evaluations.
  std::int64_t backwards_to_evaluation_ = 0;
  std::unique_ptr<order> order_;
  waiting waiting_;
  /// Actions of experts and servers: granted first, in order of arrival.
  std::vector<granted> unordered_;
  std::vector<action> in_turn_; ///< Running actions that have turns, in order of turns.
  std::vector<granted> paused_updates_;
  /// A paused action of a stage, other than an update. No other pass of this rank
  /// begins before the paused one resumes, so a rank stashes no more than the program
  /// says.
  std::optional<action> paused_;
  std::vector<position> hosted_;
  std::int64_t turns_ = 0; ///< Number of turns granted.
  /// Number of parameter copies that evaluations may use at the same time.
  int copies_ = 0;
  /// Number of backwards of the evaluated stage, since the last batch evaluated before
  /// the run.
  int backwards_ = 0;
  int evaluated_ = 0;
  int next_checkpoint_ = 0; ///< Batches of the run; 0: no checkpoint is due.
};

} // namespace troupe
