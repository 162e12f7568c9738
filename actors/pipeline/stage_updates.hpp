// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/pipeline/stage_meetings.hpp"
#include "actors/pipeline/stage_port.hpp"
#include "actors/pipeline/stage_saver.hpp"
#include "actors/pipeline/stage_work.hpp"
#include "messaging/mail/control.hpp"

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace troupe {

/// Reports of a forward.
struct forward_report {
  std::optional<mail::microbatch_loss> loss;
  std::vector<mail::expert_load> loads;
};

/// The updates of a stage, as the stage sees them: which backwards each covers, what
/// the optimizer shard is given for one, and which snapshots and versions are reported.
class stage_updates {
public:
  /// \param plan,port,work,meetings,books outlive it
  stage_updates(const run_plan& plan, position where, stage_port& port,
                stage_work& work, stage_meetings& meetings, stage_ledger& books);

  /// A backward begins that sums: whether its gradients are the first of an update, and
  /// the last.
  struct place_in_sum {
    bool first = false;
    bool last = false;
  };
  place_in_sum begin_backward();

  /// Keeps the reports of a forward until the update begins that covers it: losses and
  /// loads of an interrupted run are those of its updates.
  void end_forward(int microbatch, forward_report reports);

  /// B or W of a microbatch has ended.
  void end_backward(int microbatch);

  /// Gives the optimizer shard all that an update takes, once no copy is made of what
  /// it may write. It goes on from there.
  void begin(const action& a);

  /// The version is there. The update is over when what is wanted of it is copied.
  void end(const mail::updated& last);

  /// The work that was given to the device for `copying` has ended: reports the copy.
  void end_copy();

  /// Whether an update was ended and all of it that is wanted is copied, once.
  bool take_over();

  /// The last update that was ended, as it was measured.
  const measured_action& measured() const { return update_; }

  bool under_way() const { return under_way_; }

  /// Whether copies are under way.
  bool copies() const { return !reports_.empty(); }

  /// The action under which the device copies: `ended` with it is a copy's.
  action copying() const { return {op::update, where_.direction, where_.stage, 0}; }

  /// Whether all backwards of the run have ended.
  bool has_all_gradients() const;

  /// Copies the parameters if an evaluation wants those that there are now.
  void copy_if_due();

  /// What the stage has in the end. \throws std::logic_error if an update was not made
  mail::collected collect() const;

  /// The versions that are still read, the newest first. \throws as collect()
  std::vector<aged_version> versions() const;

private:
  int newest() const;
  void send_reports();
  void tell_all_buckets(const std::vector<buffer>& gradients);
  void copy(std::function<void()> run, std::function<void()> report);
  void copy_last_version();
  std::vector<std::span<const float>>
  arrays_of(shared_out what, const std::vector<buffer>& buckets) const;

  const run_plan& plan_;
  position where_;
  stage_port& port_;
  stage_work& work_;
  stage_meetings& meetings_;
  stage_ledger& books_;
  int sums_begun_ = 0; // backwards, since the last update
  int backwards_begun_ = 0;
  std::int64_t samples_summed_ = 0;  // likewise
  std::int64_t samples_updated_ = 0; // in all updates
  int backwards_ended_ = 0;
  std::map<int, forward_report> forwards_; // without a backward, by microbatch
  std::vector<forward_report> covered_;    // by the next update
  bool under_way_ = false;
  int snapshot_due_ = 0;        // batches; 0: none is due
  measured_action update_{};    // under way, without its times, or the last one
  bool ended_ = false;          // the update has, and was not taken yet
  std::optional<action> waits_; // an update that begins when copies are made
  std::deque<std::function<void()>> reports_; // of copies that the device makes
};

} // namespace troupe
