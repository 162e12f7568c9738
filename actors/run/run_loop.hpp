// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/mail/handles.hpp"
#include "actors/mail/send.hpp"
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

struct run_plan;

struct training_state;

/// The parts of a run that a run loop uses. All parts outlive the loop.
struct managed_run {
  const run_plan& plan;
  const run_callbacks& callbacks;
  run_status& status;
  actor_runtime& runtime;
  message_meter& meter;
  const coordinator_actor& coordinator;
  wall_clock& clock; ///< Stands still during the callback `evaluate`.
  /// The part in other processes; null if all of the run is here.
  distant_run* remote_part;
};

/// Waits for a run, on the thread that performs the run. Meanwhile this loop serves
/// evaluations and checkpoints, reports progress, and ends the run early if
/// run_callbacks::interrupted is set. Each kind of clock has a loop of its own. All
/// functions, and all callbacks that a loop calls, run on that thread.
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

  /// Passes every posted snapshot to the callback `evaluate`, while ranks rest. In a
  /// run that is ended early, only removes snapshots, because ranks wait for free
  /// copies. If the run fails before ranks rest, drops the oldest snapshot.
  /// \throws exceptions of the callback
  void serve_snapshots();

  /// Advances a checkpoint, if one is due. When all ranks wait there, stages copy; for
  /// a checkpoint on disk, only after all copies of the last one on disk have come.
  /// When all stages have copied, ranks resume. If the plan keeps steps, ranks resume
  /// only after the evaluations up to the checkpoint. When all copies of a checkpoint
  /// on disk have come, `save` of the callbacks receives the copies. A step that is
  /// only kept has no such call.
  /// \throws exceptions of the callbacks
  void serve_checkpoint();

  /// Waits until the copies of the last checkpoint on disk have come and `save` of the
  /// callbacks has received the copies, or the run has failed.
  /// \throws exceptions of the callbacks
  void finish_saving();

  /// Passes copies of the state of all stages to `save` of the callbacks. Returns
  /// without that call if the run fails meanwhile.
  /// \param batches number of batches that the run has finished, without batches before
  /// the run
  /// \pre all ranks rest, and finish_saving() has returned
  /// \throws exceptions of the callbacks
  void save(int batches);

  /// Returns the newest parameters and the last gradients of every stage in every
  /// replica; empty if the run fails meanwhile.
  /// \pre no rank runs an action
  std::vector<mail::collected> collect();

  /// Fetches the kept state of a run that has lost processes: the state after the last
  /// batch that every stage has kept. One data replica of each stage is asked; if that
  /// replica's process is lost too, the next data replica with the same experts is
  /// asked. Returns the reason if no process was lost, no step was kept, some state is
  /// missing, or memory is short. State is missing, too, if nothing comes for 10 s, or
  /// `interrupted` is set.
  tl::expected<std::shared_ptr<const training_state>, std::string> fetch_kept_state();

  /// True if wait() has noticed that the caller has ended the run early.
  bool stopping() const { return stopping_; }

protected:
  /// In real time makes all ranks rest until ranks receive `mail::resume`. Waits, and
  /// returns true when no action runs, false if the run has failed. In virtual time
  /// does nothing and returns true, because the virtual clock stands still.
  virtual bool rest() = 0;

  /// In real time waits at most 20 ms for an event, and returns true. In virtual time
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
