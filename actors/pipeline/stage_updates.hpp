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

/// Reports of a forward for the recorder. The loss is present in the last stage of each
/// data replica and direction, from tensor shard 0; absent in a simulation.
struct forward_report {
  std::optional<mail::microbatch_loss> loss;
  std::vector<mail::expert_load> loads;
};

/// The updates of a stage, from the stage's side. This class counts the backwards that
/// each update covers and requests updates from the optimizer shard. Snapshots and kept
/// versions are copied and reported here too.
class stage_updates {
public:
  /// \param plan,port,work,meetings,ledger outlive this object
  stage_updates(const run_plan& plan, position where, stage_port& port,
                const stage_work& work, stage_meetings& meetings,
                stage_version_ledger& ledger);
  stage_updates(const stage_updates&) = delete; // works of copies refer to this object
  stage_updates& operator=(const stage_updates&) = delete;

  /// Position of a backward's gradients in the sum of an update: `first` if the
  /// gradients are the update's first, `last` if the update's or the run's last.
  struct position_in_sum {
    bool first = false;
    bool last = false;
  };

  /// To be called when a B or W begins. Returns the position of the action's gradients.
  position_in_sum begin_backward();

  /// Keeps the reports of a forward until the update begins that covers the microbatch.
  /// So an interrupted run reports losses and expert loads only of updates that have
  /// begun.
  void end_forward(int microbatch, forward_report reports);

  /// To be called when B or W of a microbatch has ended: counts the samples, and notes
  /// a snapshot that becomes due. If all data replicas update together, the samples of
  /// this microbatch in all replicas count.
  void end_backward(int microbatch);

  /// Sends the optimizer shard the request for an update, as soon as no copy is under
  /// way: a copy reads buffers that the update may overwrite. Before the request, sends
  /// the reports of the forwards that the update covers.
  /// \pre !under_way()
  void begin(const action& a);

  /// To be called when the next version is written. The update counts as finished when
  /// all requested copies of the version are made.
  void end(const mail::updated& last);

  /// To be called when the device has ended a copy, which is the work that copying()
  /// names. Reports the copy. Begins an update that waited, if no other copy is under
  /// way.
  /// \throws std::logic_error if no copy is under way
  void end_copy();

  /// Returns true once for each update, after the update's end and the end of all
  /// requested copies.
  bool take_over();

  /// The last update that has ended, with measured times.
  /// \pre !under_way(), and an update has ended
  const measured_action& measured() const { return update_; }

  /// True from the request to the optimizer shard until end(). False while begin()
  /// waits for copies.
  bool under_way() const { return under_way_; }

  /// True while the device copies parameters, for an evaluation or a kept version.
  bool copies() const { return !reports_.empty(); }

  /// The action that names a copy's work on the device; mail::ended with this action is
  /// the end of a copy.
  action copying() const { return {op::update, where_.direction, where_.stage, 0}; }

  /// True if all backwards of this stage and direction in the run have ended.
  bool has_all_gradients() const;

  /// Copies the parameters for an evaluation if a snapshot of the newest version is due
  /// and no update is under way.
  void copy_if_due();

  /// Returns the stage's final parameters and gradients. In a simulation the result has
  /// no parameters, and empty buffers as gradients.
  /// \throws std::logic_error if an update is still under way
  mail::collected collect() const;

  /// Returns the newest version, and the older versions that a pass under way or a
  /// later pass reads; the newest first.
  /// \throws std::logic_error if an update is still under way
  std::vector<aged_version> versions() const;

private:
  int newest() const;
  void send_reports();
  void notify_all_buckets(const std::vector<buffer>& gradients);
  void copy(std::function<void()> run, std::function<void()> report);
  void copy_last_version();
  std::vector<std::span<const float>>
  arrays_of(shared_out kind, const std::vector<buffer>& buckets) const;

  const run_plan& plan_;
  position where_;
  stage_port& port_;
  const stage_work& work_;
  stage_meetings& meetings_;
  stage_version_ledger& ledger_;
  int sums_begun_ = 0;               // backwards begun since the last update
  int backwards_begun_ = 0;          // since the start of the run
  std::int64_t samples_summed_ = 0;  // since the last update
  std::int64_t samples_updated_ = 0; // in all updates so far
  int backwards_ended_ = 0;
  std::map<int, forward_report> forwards_; // of microbatches without a backward
  std::vector<forward_report> covered_;    // reports that the next update sends
  bool under_way_ = false;
  int snapshot_due_ = 0;     // number of batches; 0: none is due
  measured_action update_{}; // the update under way, without times, or the last one
  bool ended_ = false; // the update has ended, and take_over() has not returned true
  std::optional<action> waits_; // update that begins after the copies under way
  std::deque<std::function<void()>> reports_; // of the device's copies, in order
};

} // namespace troupe
