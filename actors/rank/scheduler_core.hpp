// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/plan/run_plan.hpp"
#include "messaging/mail/control.hpp"
#include "messaging/mail/turns.hpp"
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
  /// \param depth number of actions that the device accepts at the same time, where a
  /// second one may be granted (has_capacity())
  scheduler_core(std::shared_ptr<const run_plan> plan, std::optional<int> rank,
                 int depth);

  void handle(const mail::arrived& a);

  /// \pre is_in_turn(d)
  void handle(const mail::done& d);

  /// True if all passes granted before this pass have ended here. Two stages may report
  /// ends in any order; the record keeps the device's order.
  bool is_in_turn(const mail::done& d) const;
  void handle(const mail::paused& p);

  /// An action, the performer that runs it, and the turn in which the device starts it.
  struct granted {
    action granted_action;
    performer receiver;
    std::int64_t turn = no_turn;
    /// The second action of a pair, if `granted_action` is the first.
    std::optional<action> pair = {};
  };

  /// Returns the next action to grant; absent if no action is ready or may start now.
  /// Actions of experts and parameter servers go first, because stages wait for each.
  std::optional<granted> grant();

  /// True if a grant depends on everything that has arrived. That is so under a local
  /// rule, and while an update is paused: a paused update goes before the program.
  bool has_choice() const {
    return rank_ && (plan_->sch.local_rule() || !paused_updates_.empty());
  }

  void hold() { held_ = true; }

  /// Starts no more updates (a local rule: admits no more microbatches). Returns the
  /// rank, and the number that `order::freeze` returns.
  /// \pre the scheduler has a rank
  mail::started freeze() { return {*rank_, order_->freeze()}; }
  void handle(const mail::stop_after& s) { order_->stop_after(s.count); }

  void handle(const mail::resume& p);

  /// The batches of the run that this rank has finished, if the rank waits for a
  /// checkpoint; else absent.
  std::optional<int> at_checkpoint();
  void handle(const mail::resume_from_checkpoint&);

  /// True if the rank is held and nothing runs.
  bool at_rest() const { return held_ && running_ == 0; }

  /// True if the rank has run all actions of the order; always false for a device
  /// without a program.
  bool finished() { return rank_ && running_ == 0 && order_->finished(); }

  /// The input or action that the scheduler waits for, in words.
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
