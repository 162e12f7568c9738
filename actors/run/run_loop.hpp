// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/mail/handles.hpp"
#include "actors/mail/send.hpp"
#include "actors/plan/run_plan.hpp"
#include "actors/run/actor_runtime.hpp"
#include "actors/run/distant_run.hpp"
#include "actors/run/run_callbacks.hpp"
#include "actors/run/run_status.hpp"
#include "kernels/occupation.hpp"

#include <tl/expected.hpp>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace troupe {

struct training_state;

/// The parts of a run that a run loop uses. All parts outlive the loop.
struct managed_run {
  const run_plan& plan;
  const run_callbacks& callbacks;
  run_status& status;
  actor_runtime& runtime;
  message_meter& meter;
  const coordinator_actor& coordinator;
  wall_clock& clock; ///< Stands still during evaluations.
  /// The part in other processes; null if all of the run is here.
  distant_run* remote_part;
};

/// Waits for a run, on the thread that performs the run. Meanwhile this loop serves
/// evaluations and checkpoints, reports progress, and ends the run early when the
/// caller says so. Each kind of clock has a loop of its own.
class run_loop {
public:
  explicit run_loop(const managed_run& run) : run_(run) {
    // nop
  }
  virtual ~run_loop() = default;
  run_loop(const run_loop&) = delete;
  run_loop& operator=(const run_loop&) = delete;

  /// Waits until the run has finished or failed, as the status says.
  /// \throws exceptions of the callbacks
  virtual void wait() = 0;

  /// Passes every posted snapshot to the caller's evaluation, while ranks rest. In a
  /// run that is ended early, only removes snapshots, because ranks wait for free
  /// copies.
  void serve_snapshots();

  /// Advances a checkpoint, if one is due. When all ranks wait there, stages copy; when
  /// all stages have copied, ranks resume. When all copies have come, `save` of the
  /// callbacks receives the copies.
  void serve_checkpoint();

  /// Waits until the copies of the last checkpoint have come, or the run has failed.
  void finish_saving();

  /// Passes the state of all stages to the caller, and waits for the copies.
  /// \param batches number of batches that the run has finished
  /// \pre all ranks rest, and finish_saving() has returned
  void save(int batches);

  /// Returns the weights of all stages; empty if the run fails meanwhile.
  /// \pre all ranks rest
  std::vector<mail::collected> collect();

  /// Fetches the kept state of a run that has lost processes: the state after the last
  /// batch that every stage has kept. One data replica of each stage is asked; if that
  /// replica's process is lost too, the next data replica is asked. Returns the reason
  /// if some state is missing.
  tl::expected<std::shared_ptr<const training_state>, std::string> fetch_kept_state();

  /// True if the caller has ended the run early.
  bool stopping() const { return stopping_; }

protected:
  /// Makes all ranks rest until ranks receive `mail::resume`. Returns true when no
  /// action runs, false if the run has failed.
  virtual bool rest() = 0;

  /// In real time waits a short time for an event, and returns true. In virtual time
  /// makes the next event happen; returns false if no event is left.
  virtual bool advance() = 0;

  void stop_if_interrupted();
  void pause_clocks();
  void resume_clocks();
  void report_now_and_then();

  managed_run run_;

private:
  void evaluate(const run_status::snapshot& parts);
  void count_evaluated(const run_status::snapshot& parts);
  void begin_saving(const mail::save& request);
  bool is_on_disk(int batches) const;
  bool has_evaluated(int batches) const;
  class state_fetch;

  bool has_lost() const;
  void take_copied();
  void take_saved();

  int evaluated_ = 0;
  int evaluated_to_ = 0; // batches, including batches before the run
  bool stopping_ = false;
  std::optional<mail::save> due_;     // the checkpoint at which all ranks wait
  std::optional<mail::save> copying_; // the checkpoint for which stages copy
  bool copied_ = false;               // all stages have copied for `copying_`
  std::optional<int> saving_;         // batches whose copies have not all come
  std::optional<int> kept_;           // batches after which all stages keep copies
  std::chrono::steady_clock::time_point last_report_ = std::chrono::steady_clock::now();
};

} // namespace troupe
