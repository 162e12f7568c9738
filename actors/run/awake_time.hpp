// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "kernels/occupation.hpp"

#include <algorithm>

namespace troupe {

/// Counts the time in which a watchdog could notice events. A process that was stopped
/// reads nothing meanwhile, so a look that comes late counts as little time.
class awake_time {
public:
  /// \param most time between two looks that counts, in nanoseconds
  explicit awake_time(nanoseconds most) : most_(most) {
    // nop
  }

  /// Returns the time to count since the last look; the first look starts the count.
  nanoseconds look(nanoseconds now) {
    const auto since = has_looked_ ? now - last_ : 0;
    has_looked_ = true;
    last_ = now;
    return std::min(since, most_);
  }

private:
  nanoseconds most_;
  nanoseconds last_ = 0;
  bool has_looked_ = false;
};

/// The time that another process has been silent, as counted by this process's
/// watchdog.
class silence {
public:
  /// \param last_message time of the last message from the other process \param awake
  /// time counted since the last look. All in nanoseconds
  nanoseconds look(nanoseconds now, nanoseconds last_message, nanoseconds awake) {
    return so_far_ = std::min(now - last_message, so_far_ + awake);
  }

private:
  nanoseconds so_far_ = 0;
};

} // namespace troupe
