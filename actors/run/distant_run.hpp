// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/run/local_run.hpp"
#include "actors/run/stall.hpp"
#include "messaging/mail/nodes.hpp"

#include <string>
#include <vector>

namespace troupe {

/// The part of a run in other processes, as the leading process sees that part: all
/// actors that compute. An object lasts for one run. When the run begins, every process
/// is ready to start. All calls come from the thread that performs the run, except
/// look() and at_work().
class distant_run : public distant_watch {
public:
  /// Returns a maker of handles for all actors that are elsewhere. This object outlives
  /// the handles' actors.
  virtual local_run::distant_maker maker() = 0;

  /// Groups of ranks whose GPUs exchange arrays without messages, and the reason if a
  /// possible group is not among them.
  virtual known_groups groups() const = 0;

  /// Starts the run in every process, and accepts messages from then on. A process that
  /// is lost during the run, or was lost before, is a failure in the status of
  /// `local_part`.
  /// \param local_part outlives the run, until end() has returned
  virtual void begin(local_run& local_part) = 0;

  // pause() stops the run's clock in every process; resume() starts the clock again.
  virtual void pause() = 0;
  virtual void resume() = 0;

  /// Ends the run in every process; no message comes in afterwards. Returns the
  /// measurements of the processes that have answered in time, and at later calls none.
  virtual std::vector<mail::node_report> end() = 0;

  /// True if the process that hosts a rank is lost.
  virtual bool has_lost(int rank) const = 0;

  /// Bytes of tensors that this process has sent and received since the object was
  /// made.
  virtual std::int64_t moved() const = 0;

  /// Upper bound on the nanoseconds by which times of different processes differ.
  virtual nanoseconds clock_doubt() const = 0;
};

} // namespace troupe
