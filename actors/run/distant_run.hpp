// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/run/local_run.hpp"
#include "actors/run/stall.hpp"
#include "messaging/mail/nodes.hpp"

#include <string>
#include <vector>

namespace troupe {

/// The part of a run in other processes, as the leading process sees that part: all
/// actors that compute. An object lasts for one run. All calls come from the thread
/// that performs the run, except look() and at_work().
class distant_run : public distant_watch {
public:
  /// Returns a maker of handles for all actors that are elsewhere.
  virtual local_run::distant_maker maker() = 0;

  /// Groups of ranks whose GPUs exchange arrays without messages.
  virtual known_groups groups() const = 0;

  /// Accepts messages, waits until every process is ready, and starts the run. A
  /// process that is lost from now on is a failure in the status of `local_part`.
  virtual void begin(local_run& local_part) = 0;

  // pause() stops the run's clock in every process; resume() starts the clock again.
  virtual void pause() = 0;
  virtual void resume() = 0;

  /// Ends the run in every process; no message comes in afterwards. Returns the
  /// measurements of other processes, as far as known.
  virtual std::vector<mail::node_report> end() = 0;

  /// True if the process that hosts a rank is lost.
  virtual bool has_lost(int rank) const = 0;

  /// Bytes of tensors that this process has sent and received so far.
  virtual std::int64_t moved() const = 0;

  /// The nanoseconds by which times of different processes may differ.
  virtual nanoseconds clock_doubt() const = 0;
};

} // namespace troupe
