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

/// A scheduler without its mailbox: its rank's order, what has arrived, and what its
/// device has been given. Knows no actors.
class scheduler_core {
public:
  /// \param rank absent: of a device that follows no program and grants what arrives,
  /// as a parameter server's \param depth actions that the device takes at once, if one
  /// may be granted behind the other (has_room())
  scheduler_core(std::shared_ptr<const run_plan> plan, std::optional<int> rank,
                 int depth);

  void hear(const mail::arrived& a);

  /// \pre is_in_turn(d)
  void hear(const mail::done& d);

  /// Whether all passes that were granted before it have been heard to end. Two stages
  /// may tell of theirs in any order; the record keeps the device's.
  bool is_in_turn(const mail::done& d) const;
  void hear(const mail::paused& p);

  /// An action, who is to run it, and the turn in which the device starts it.
  struct granted {
    action what;
    performer who;
    std::int64_t turn = no_turn;
    std::optional<action> pair = {}; ///< Of the first of one: the second.
  };

  /// What to grant now, if there is anything and the device has room. Experts go first:
  /// a stage waits for each.
  std::optional<granted> grant();

  /// Whether what it grants depends on all that has arrived: by a local rule, and while
  /// an update waits, which goes before the program.
  bool has_choice() const {
    return rank_ && (plan_->sch.local_rule() || !paused_updates_.empty());
  }

  void hold() { held_ = true; }

  /// Begins no further update (a local rule: takes no further microbatch), and tells
  /// how many it has begun.
  mail::begun freeze() { return {*rank_, order_->freeze()}; }
  void hear(const mail::stop_after& s) { order_->stop_after(s.count); }

  void hear(const mail::proceed& p);

  /// The batches of the run that its rank has been through, if it waits there for a
  /// checkpoint to be taken.
  std::optional<int> at_checkpoint();
  void hear(const mail::go_on&);

  /// Whether it is held and nothing runs.
  bool at_rest() const { return held_ && running_ == 0; }

  /// Whether the rank has done all it had to do. A device without a program never has.
  bool finished() { return rank_ && running_ == 0 && order_->finished(); }

  /// What it waits for, in words.
  mail::waiting_for explain();

private:
  bool has_room() const;
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
  // Evaluations need a copy of the parameters each; a rank waits when it has none left.
  int evaluated_stage_ = -1; ///< Of those here the one that is furthest.
  std::int64_t backwards_to_evaluation_ = 0; ///< Of that stage; 0: none is evaluated.
  std::unique_ptr<order> order_;
  waiting waiting_;
  std::vector<granted> guests_; ///< Who compute when they can, in no order: experts.
  std::vector<action> in_turn_; ///< Of what runs: with turns, in their order.
  std::vector<granted> paused_updates_;
  /// Of a stage, other than an update. Nothing else of a stage begins before it goes
  /// on, so that a rank holds what its program says.
  std::optional<action> paused_;
  std::vector<position> hosted_;
  std::int64_t turns_ = 0; ///< Granted.
  int copies_ = 0;         ///< For evaluations.
  int backwards_ = 0; ///< Of the evaluated stage, since a batch was evaluated first.
  int evaluated_ = 0;
  int next_checkpoint_ = 0; ///< Batches of the run; 0: there is none.
};

} // namespace troupe
