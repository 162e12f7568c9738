// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/mail/handles.hpp"
#include "actors/mail/run_context.hpp"
#include "actors/run/modelled_times.hpp"
#include "actors/run/run_status.hpp"
#include "messaging/bounded_list.hpp"

#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>

#include <array>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace troupe {

/// The losses of a run, one entry for each minibatch (under a local rule for each
/// microbatch). Losses of microbatches may be added in any order; repetitions are
/// ignored. A run that keeps no record has at most `most_entries` entries: an entry may
/// then be a mean of several minibatches. One thread at a time uses an object.
class loss_log {
public:
  /// \param plan outlives this object
  explicit loss_log(const run_plan& plan);

  /// Adds a microbatch's loss; returns the progress of the run with that loss.
  /// `progress::losses` has the losses of the minibatches that this loss completes
  /// (under a local rule: microbatches).
  /// \pre the plan has a training (`work`)
  progress add(const mail::microbatch_loss& loss);

  /// Mean loss of each entry, in nats per prediction. An entry counts when its losses
  /// and all earlier losses have come. If an entry is a mean of several minibatches,
  /// the last entry may still grow.
  std::vector<double> losses() const;
  /// Number of samples in this run up to the end of each entry of losses().
  std::vector<std::int64_t> samples() const;

  /// The number of microbatches, of all data replicas, whose losses have not come.
  /// \param to_end true: counts up to the end of the plan; false: counts up to the last
  /// loss that has come. With false, the result is 0 if replicas stop after different
  /// updates
  std::int64_t missing(bool to_end) const;

  /// Records the time at which the forward of a microbatch's loss has ended.
  /// \param microbatch index over all data replicas, as in mail::microbatch_loss
  /// \param when nanoseconds on the run's clock
  void ended(int microbatch, nanoseconds when);

  /// Time at which the last forward of each entry of losses() ended, in nanoseconds on
  /// the run's clock. Forwards of later entries do not count. Empty if the time of any
  /// entry is unknown.
  std::vector<nanoseconds> ends() const;

  /// Number of minibatches (under a local rule: microbatches) in an entry; the last
  /// entry may have fewer.
  std::int64_t every() const { return entries_.every(); }

private:
  struct entry {
    double loss;          // mean over predictions
    std::int64_t samples; // of this entry
  };

  std::int64_t loss_index_of(int microbatch) const;
  bool ends_entry(std::int64_t loss_index) const;
  void end_entry();
  void match_ends();

  const run_plan& plan_;
  std::map<std::int64_t, mail::microbatch_loss> early_; // by loss index
  std::int64_t next_ = 0;                               // loss index
  progress so_far_;
  mail::microbatch_loss sum_{}; // of the entry under way
  bounded_list<entry> entries_;
  std::map<std::int64_t, nanoseconds> early_ends_; // by loss index
  std::int64_t next_end_ = 0;                      // loss index
  nanoseconds last_end_ = 0;                       // of the entry under way
  bounded_list<nanoseconds> ends_;
  std::int64_t entries_added_ = 0, ends_added_ = 0;
};

/// The updates of a run, one entry for each update of all stages. Parts of updates may
/// be added in any order. A run that keeps no record has at most `most_entries`
/// entries: an entry may then be a mean of several updates. One thread at a time uses
/// an object.
class update_log {
public:
  explicit update_log(const run_plan& plan);

  /// Adds a part. Returns the updates whose parts are all there now, in order.
  std::vector<update_so_far> add(const mail::update_part& part);

  /// Norms of the mean gradients before clipping, one for each entry.
  std::vector<double> norms() const;
  std::vector<double> rates() const;
  /// Number of updates in an entry; the last entry may have fewer.
  std::int64_t every() const { return entries_.every(); }

private:
  /// The parts of one update so far.
  struct sum {
    std::map<std::array<int, 3>, double> squares; // by data, stage and tensor
    std::int64_t samples = 0;
    double rate = 0;
  };
  struct entry {
    double norm, rate; // means
    std::int64_t updates;
  };

  std::size_t parts_;        // of an update
  std::map<int, sum> early_; // by version
  int next_ = 1;             // version
  std::int64_t samples_ = 0;
  bounded_list<entry> entries_;
};

/// The messages that the recorder of a run has received, as values. The recorder writes
/// the log; other threads read after the recorder has ended.
struct run_log {
  /// \param plan outlives this object
  explicit run_log(const run_plan& plan);

  /// Adds the next parts of actions that a rank has run, in the rank's order.
  void add(int rank, const std::vector<measured_action>& ran);

  /// Adds a microbatch's loss; returns the progress of the run with that loss.
  progress add(const mail::microbatch_loss& loss);

  /// Removes and returns the actions that came since the last call, with times; none if
  /// the run is not watched. If the plan models times, an action comes once the
  /// action's times are known.
  std::vector<ranked_action> take_fresh() { return std::exchange(fresh_, {}); }

  /// The measures of a run as if each rank had a device of its own; absent unless the
  /// plan models times.
  /// \param finished true if the run has finished
  /// \throws std::logic_error if the run has finished and some time is unknown
  std::optional<measures> modelled(bool finished) const;

  std::vector<rank_sums> sums; ///< The last sums of each rank, on the run's clock.
  record actions;              ///< By rank: kept actions; empty if none are kept.
  bool cut = false;            ///< True if some but not all actions were kept.
  loss_log losses;
  update_log updates;
  /// Versions of all stages, if the plan keeps versions.
  std::vector<mail::version_made> versions;
  expert_loads loads;

private:
  void keep(int rank, const measured_action& s);
  void note_loss(int rank, const measured_action& s);

  const run_plan& plan_;
  std::optional<modelled_times> model_;
  std::vector<rank_sums> modelled_; // with modelled times
  std::vector<ranked_action> fresh_;
};

struct recorder_state {
  std::string name = "recorder";
  run_context shared;
  std::shared_ptr<run_log> log;
  std::shared_ptr<run_status> status;
};

/// Records the actions, losses, versions and expert loads that other actors report.
/// Posts progress, and the actions of a watched run, to `status`.
recorder_actor::behavior_type
recorder(recorder_actor::stateful_pointer<recorder_state> self, run_context shared,
         std::shared_ptr<run_log> log, std::shared_ptr<run_status> status);

} // namespace troupe
