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
  /// The part in other processes; null: all of the run is here.
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

  /// Passes every posted snapshot to the caller's evaluation. Once the run is
  /// being ended early, only removes snapshots: ranks wait for copies.
  void serve_snapshots();

  /// Takes the next step of a checkpoint, if one is due. When all ranks wait there,
  /// stages copy; when all stages have copied, ranks resume. When all copies have come,
  /// the caller receives them.
  void serve_checkpoint();

  /// Waits until the copies of the last checkpoint have come, or the run has failed.
  void finish_saving();

  /// Passes the state of all stages to the caller, after this many batches of the run.
  /// \pre all ranks rest, and finish_saving()
  void save(int batches);

  /// The weights of all stages while all ranks rest; empty if the run fails meanwhile.
  std::vector<mail::collected> collect();

  /// Fetches the state of a run that has lost processes: everything after the last step
  /// that every stage has kept. One data replica of each stage is asked; the next one
  /// if that replica's process is lost too. Returns the reason if some state is
  /// missing.
  tl::expected<std::shared_ptr<const training_state>, std::string> fetch_kept_state();

  /// True if the caller has ended the run early.
  bool stopping() const { return stopping_; }

protected:
  /// Makes the run's clock stand still until ranks receive `mail::resume`; false if the
  /// run failed meanwhile.
  virtual bool rest() = 0;

  /// Waits for an event, or makes the next one happen; false if no event is left.
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
  std::optional<mail::save> due_;     // all ranks wait at this one
  std::optional<mail::save> copying_; // stages copy for this one
  bool copied_ = false;               // all stages have copied for that
  std::optional<int> saving_;         // batches whose copies have not all come
  std::optional<int> kept_;           // batches after which all stages keep copies
  std::chrono::steady_clock::time_point last_report_ = std::chrono::steady_clock::now();
};

} // namespace troupe
