// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "kernels/occupation.hpp"

#include <algorithm>

namespace troupe {

/// Counts the time during which a watchdog can notice events. A stopped process notices
/// nothing, so the time between two calls of look() counts only up to a limit.
class awake_time {
public:
  /// \param most the limit, in nanoseconds
  explicit awake_time(nanoseconds most) : most_(most) {
    // nop
  }

  /// Returns the nanoseconds that count since the last call, at most the limit; 0 at
  /// the first call.
  /// \param now current time, in nanoseconds
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
  /// Returns the nanoseconds since the last message, but at most `awake` more than the
  /// last call returned. At the first call returns at most `awake`.
  /// \param now current time, in nanoseconds
  /// \param last_message time of the last message from the other process, in
  /// nanoseconds
  /// \param awake nanoseconds that awake_time has counted since the last call
  nanoseconds look(nanoseconds now, nanoseconds last_message, nanoseconds awake) {
    return so_far_ = std::min(now - last_message, so_far_ + awake);
  }

private:
  nanoseconds so_far_ = 0;
};

} // namespace troupe
