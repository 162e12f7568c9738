#pragma once

#include "actors/mail/messages.hpp"
#include "actors/mail/props.hpp"
#include "schedules/order.hpp"
#include "schedules/waiting.hpp"

#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>

#include <deque>
#include <memory>
#include <string>
#include <vector>

namespace troupe {

/// A rank's order, what has arrived for it, and what its device has been given.
class scheduler_core {
public:
  /// \param depth actions that its device takes at once
  scheduler_core(std::shared_ptr<const run_plan> plan, int rank, int depth);

  void hear(const mail::arrived& a) { waiting_.add(a.what); }
  void hear(const mail::done& d);
  void hear(const mail::paused& p);

  /// An expert has all rows of a pass; it has computed it.
  void hear(const mail::expert_arrived& e) { experts_.push_back(e.expert); }
  void hear(const mail::expert_done&) { --running_; }

  /// The expert to let compute now, if there is one and the device has room. A stage
  /// waits for it.
  std::optional<int> grant_expert();

  /// The action to grant now, if there is one and the device has room.
  std::optional<action> grant();

  /// Whether what it grants depends on all that has arrived: by a local rule, and while
  /// an update waits, which goes before the program.
  bool has_choice() const {
    return plan_->sch.local_rule() || !waiting_updates_.empty();
  }

  void hold() { held_ = true; }

  /// Begins no further update (a local rule: takes no further microbatch), and says how
  /// many it has begun.
  mail::begun freeze() { return {rank_, order_->freeze()}; }
  void hear(const mail::stop_after& s) { order_->stop_after(s.count); }

  void hear(const mail::proceed& p);

  /// Whether it is held and nothing runs.
  bool at_rest() const { return held_ && running_ == 0; }

  /// Whether the rank has done all it had to do.
  bool finished() { return running_ == 0 && order_->finished(); }

  /// What it waits for, in words.
  mail::waiting_for explain();

  /// Which of the rank's stages an action belongs to, by position.
  std::size_t stage_of(const action& a) const;

private:
  bool ahead_of_evaluations() const;

  std::shared_ptr<const run_plan> plan_;
  int rank_;
  int depth_;
  std::vector<position> hosted_;
  std::unique_ptr<order> order_;
  waiting waiting_;
  std::deque<int> experts_; ///< That wait for the device.
  int running_ = 0;
  /// Other than an update, of which the order knows. Nothing else begins before it goes
  /// on, so that actions of a stage never mix and a rank holds what its program says.
  std::optional<action> paused_;
  std::vector<action> waiting_updates_;
  bool held_ = false;
  // Evaluations need a copy of the parameters each; a rank waits when it has none left.
  int evaluated_stage_ = -1; ///< Of those here the one that is furthest.
  std::int64_t backwards_to_evaluation_ = 0; ///< Of that stage; 0: none is evaluated.
  int copies_ = 0;
  int backwards_ = 0;
  int evaluated_ = 0;
};

struct scheduler_state {
  std::string name = "scheduler";
  props shared;
  int rank = 0;
  std::unique_ptr<scheduler_core> core;
  scheduler_peers peers;
  rank_sums sums;
  std::vector<sample> samples; ///< Kept, and not yet sent to the recorder.
  std::int64_t noted = 0;      ///< Of those, and of those sent.
  bool asked_to_decide = false;
  bool said_finished = false;
};

/// Decides what its rank's device does next: hears what has arrived and what is done,
/// and grants actions in the order of its program or rule.
scheduler_actor::behavior_type
scheduler(scheduler_actor::stateful_pointer<scheduler_state> self, props shared,
          int rank, int depth);

} // namespace troupe
