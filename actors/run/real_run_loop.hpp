// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/run/run_loop.hpp"
#include "actors/run/run_monitor.hpp"

namespace troupe {

/// Waits for a run in real time, whose actors have threads. A watchdog ends the run if
/// the run stalls, and watches until this object is destroyed.
class real_run_loop : public run_loop {
public:
  /// \param watch outlives this object
  real_run_loop(const managed_run& run, run_monitor& watch)
    : run_loop(run), watch_(watch) {
    // nop
  }
  ~real_run_loop() override { watch_.end(); }

  /// Starts the threads and the watchdog, then waits for the run. Callbacks are called
  /// on this thread.
  /// \throws no_thread, exceptions of the callbacks
  void wait() override;

private:
  bool rest() override;
  bool advance() override;
  void help();

  run_monitor& watch_;
};

} // namespace troupe
