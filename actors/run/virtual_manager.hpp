// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/run/stage_manager.hpp"
#include "kernels/virtual_clock.hpp"

namespace troupe {

/// Runs a run in virtual time, event by event: actors handle all messages of an event
/// before the next event. A run that has not finished when no event is left has
/// stalled.
class virtual_manager : public stage_manager {
public:
  /// \param clock outlives this object
  virtual_manager(const managed_run& run, virtual_clock& clock)
    : stage_manager(run), clock_(clock) {
    // nop
  }

  void wait() override;

private:
  bool rest() override { return true; } // the clock stands still by itself
  bool go_on() override;
  void hear();

  virtual_clock& clock_;
};

} // namespace troupe
