// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/run/run_watch.hpp"
#include "actors/run/stage_manager.hpp"

namespace troupe {

/// Waits for a run in real time, whose actors have threads. A watchdog ends the run if
/// the run stalls.
class real_manager : public stage_manager {
public:
  /// \param watch outlives this object
  real_manager(const managed_run& run, run_watch& watch)
    : stage_manager(run), watch_(watch) {
    // nop
  }
  ~real_manager() override { watch_.end(); }

  /// Starts the threads and the watchdog first. \throws no_thread too
  void wait() override;

private:
  bool rest() override;
  bool go_on() override;
  void help();

  run_watch& watch_;
};

} // namespace troupe
