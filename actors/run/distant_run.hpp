// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/run/ensemble.hpp"
#include "actors/run/stall.hpp"
#include "messaging/mail/nodes.hpp"

#include <string>
#include <vector>

namespace troupe {

/// The part of a run that other processes play, as the process that leads it sees that:
/// all that computes. One run long. Calls come from the thread that performs the run,
/// but for look and at_work.
class distant_run : public distant_watch {
public:
  /// Makes handles of all that are elsewhere.
  virtual ensemble::distant_maker maker() = 0;

  /// Of GPUs that exchange arrays themselves.
  virtual known_groups groups() const = 0;

  /// Lets mail come in, waits until everybody is ready everywhere, and lets the run
  /// begin. A process that is lost from now on is a failure on the ensemble's board.
  virtual void begin(ensemble& here) = 0;

  // The run's clock stands still everywhere; goes on.
  virtual void pause() = 0;
  virtual void resume() = 0;

  /// Ends the run everywhere. No mail comes in afterwards. Returns what was measured
  /// elsewhere, as far as it is known.
  virtual std::vector<mail::node_report> end() = 0;

  /// Whether the process that plays a rank is lost.
  virtual bool has_lost(int rank) const = 0;

  /// Bytes of tensors that have come and gone.
  virtual std::int64_t moved() const = 0;

  /// By so much times of different processes may be apart.
  virtual nanoseconds clock_doubt() const = 0;
};

} // namespace troupe
