// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/mail/handles.hpp"
#include "actors/mail/mail.hpp"
#include "actors/plan/run_plan.hpp"
#include "actors/run/actor_house.hpp"
#include "actors/run/distant_run.hpp"
#include "actors/run/notice_board.hpp"
#include "actors/run/run_callbacks.hpp"
#include "kernels/occupation.hpp"

#include <tl/expected.hpp>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace troupe {

struct saved_training;

/// A run as its stage manager reaches it. All of it outlives the manager.
struct managed_run {
  const run_plan& plan;
  const run_callbacks& callbacks;
  notice_board& board;
  actor_house& house;
  mail_meter& meter;
  const coordinator_actor& coordinator;
  wall_clock& clock;   ///< Stands still during evaluations.
  distant_run* others; ///< Null: all of the run is here.
};

/// The stage manager waits for a run, on the thread that performs it. Meanwhile the
/// manager serves evaluations, reports how far the run has come, and ends it early when
/// its caller says so. There is a manager for each kind of clock.
class stage_manager {
public:
  explicit stage_manager(const managed_run& run) : run_(run) {
    // nop
  }
  virtual ~stage_manager() = default;
  stage_manager(const stage_manager&) = delete;
  stage_manager& operator=(const stage_manager&) = delete;

  /// Waits until the run has finished or failed, which the board says.
  /// \throws what the callbacks throw
  virtual void wait() = 0;

  /// Gives every snapshot that is on the board to the caller's evaluation. Once the run
  /// is being ended early, takes them off the board only: ranks wait for their copies.
  void serve_snapshots();

  /// Takes the next step of a checkpoint, if one is due: when all ranks wait there,
  /// stages copy; when they have, ranks go on; when all copies have come, the caller
  /// gets them.
  void serve_checkpoint();

  /// Waits until the copies of the last checkpoint have come, or the run has failed.
  void finish_saving();

  /// Gives the caller what stages have, after so many batches of the run.
  /// \pre all ranks rest, and finish_saving()
  void save(int batches);

  /// What stages have while all ranks rest; empty if the run fails meanwhile.
  std::vector<mail::collected> collect();

  /// What is left of a run that has lost processes: all of it after the last step that
  /// every stage had kept. Of each stage one data replica is asked, and the next if its
  /// process is lost too. On error says why that is not all.
  tl::expected<std::shared_ptr<const saved_training>, std::string> recall();

  /// Whether the caller has ended the run early.
  bool stopping() const { return stopping_; }

protected:
  /// Makes the run's clock stand still until ranks hear `proceed`; false if the run
  /// failed meanwhile.
  virtual bool rest() = 0;

  /// Lets something happen; false if nothing is left that could.
  virtual bool go_on() = 0;

  void stop_if_interrupted();
  void pause_clocks();
  void resume_clocks();
  void report_now_and_then();

  managed_run run_;

private:
  void evaluate(const notice_board::snapshot& parts);
  void count_evaluated(const notice_board::snapshot& parts);
  void begin_saving(const mail::save& what);
  bool is_on_disk(int batches) const;
  bool has_evaluated(int batches) const;
  class recalling;

  bool has_lost() const;
  void take_copied();
  void take_saved();

  int evaluated_ = 0;
  int evaluated_to_ = 0; // batches, with those before the run
  bool stopping_ = false;
  std::optional<mail::save> due_;     // all ranks wait there
  std::optional<mail::save> copying_; // for this
  bool copied_ = false;               // all stages have, for that
  std::optional<int> saving_;         // batches whose copies have not all come
  std::optional<int> kept_;           // batches that all stages keep copies after
  std::chrono::steady_clock::time_point last_report_ = std::chrono::steady_clock::now();
};

} // namespace troupe
