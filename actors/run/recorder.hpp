// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/mail/handles.hpp"
#include "actors/mail/props.hpp"
#include "actors/run/modelled_times.hpp"
#include "actors/run/notice_board.hpp"
#include "messaging/bounded_list.hpp"

#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace troupe {

/// The losses of a run, minibatch by minibatch (under a local rule microbatch by
/// microbatch), as those of microbatches come, in whatever order. In a run that keeps
/// no record there are no more than most_entries.
class loss_log {
public:
  /// \param plan outlives it
  explicit loss_log(const run_plan& plan);

  /// Adds a microbatch's loss; returns how far the run has come by it.
  progress add(const mail::microbatch_loss& loss);

  /// Mean losses of the minibatches whose microbatches are all there and before which
  /// there is no gap, and the samples seen by then.
  std::vector<double> losses() const;
  std::vector<std::int64_t> samples() const;

  /// The number of microbatches whose losses have not come.
  /// \param to_end counts the whole run, else microbatches before the last loss; an
  /// interrupted run counts 0 where replicas stop after updates of their own
  std::int64_t missing(bool to_end) const;

  /// When the forward of a microbatch ended that gave its loss.
  void ended(int microbatch, nanoseconds when);

  /// When the last forward of each of losses() ended, also where other forwards have
  /// ended since; empty if that is not known of all.
  std::vector<nanoseconds> ends() const;

  /// How many minibatches make an entry of those; the last may be of fewer.
  std::int64_t every() const { return entries_.every(); }

private:
  struct entry {
    double loss;          // a prediction's
    std::int64_t samples; // of this entry
  };

  std::int64_t place_of(int microbatch) const;
  bool ends_entry(std::int64_t place) const;
  void end_entry();
  void match_ends();

  const run_plan& plan_;
  std::map<std::int64_t, mail::microbatch_loss> early_; // by place
  std::int64_t next_ = 0;                               // place
  progress so_far_;
  mail::microbatch_loss sum_{}; // of the entry under way
  bounded_list<entry> entries_;
  std::map<std::int64_t, nanoseconds> early_ends_; // by place
  std::int64_t next_end_ = 0;                      // place
  nanoseconds last_end_ = 0;                       // of the entry under way
  bounded_list<nanoseconds> ends_;
  std::int64_t entries_added_ = 0, ends_added_ = 0;
};

/// What is known of a run afterwards.
struct run_log {
  /// \param plan outlives it
  explicit run_log(const run_plan& plan);

  /// A rank's next parts of actions.
  void add(int rank, const std::vector<measured_action>& ran);

  /// A microbatch's loss; returns how far the run has come by it.
  progress add(const mail::microbatch_loss& loss);

  /// Actions that came since the last call, with their times; none if the run is not
  /// watched.
  std::vector<ranked_action> take_fresh() { return std::exchange(fresh_, {}); }

  /// The times of a run as if each rank had a device of its own, if the plan wants
  /// them. \throws std::logic_error if that is not known of all, but the run is over
  std::optional<measures> modelled(bool finished) const;

  std::vector<rank_sums> sums; ///< A rank each.
  record actions;              ///< Those that the plan keeps.
  bool cut = false;            ///< There were more.
  loss_log losses;
  std::vector<mail::version_made> versions; ///< Of all stages, if the plan keeps them.
  expert_loads loads;

private:
  void keep(int rank, const measured_action& s);
  void note_loss(int rank, const measured_action& s);

  const run_plan& plan_;
  std::optional<modelled_times> model_;
  std::vector<rank_sums> modelled_; // likewise
  std::vector<ranked_action> fresh_;
};

struct recorder_state {
  std::string name = "recorder";
  props shared;
  std::shared_ptr<run_log> log;
  std::shared_ptr<notice_board> board;
};

/// Keeps what the others say they did.
recorder_actor::behavior_type
recorder(recorder_actor::stateful_pointer<recorder_state> self, props shared,
         std::shared_ptr<run_log> log, std::shared_ptr<notice_board> board);

} // namespace troupe
