// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/run/run_loop.hpp"
#include "kernels/virtual_clock.hpp"

namespace troupe {

/// Performs a run in virtual time, event by event. Actors handle all messages of an
/// event before the next event, unless `disorder.handlers` of the callbacks limits the
/// number. A run that has not finished when no event and no message is left has
/// stalled.
class virtual_run_loop : public run_loop {
public:
  /// \param clock outlives this object
  virtual_run_loop(const managed_run& run, virtual_clock& clock)
    : run_loop(run), clock_(clock) {
    // nop
  }

  void wait() override;

private:
  bool rest() override { return true; } // the clock stands still by itself
  bool advance() override;
  void run_handlers();

  virtual_clock& clock_;
};

} // namespace troupe
