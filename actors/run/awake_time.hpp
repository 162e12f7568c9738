// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "kernels/occupation.hpp"

#include <algorithm>

namespace troupe {

/// Counts the time in which a watch could notice something. A process that was stopped
/// reads nothing meanwhile, so a look that comes late counts as little time.
class awake_time {
public:
  /// \param most time between two looks that counts
  explicit awake_time(nanoseconds most) : most_(most) {
    // nop
  }

  /// Time to count since the last look; the first look begins the count.
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

/// How long another process has been silent, in time of this one's watch.
class silence {
public:
  /// \param heard when the other process was heard last \param awake since the last
  /// look
  nanoseconds look(nanoseconds now, nanoseconds heard, nanoseconds awake) {
    return so_far_ = std::min(now - heard, so_far_ + awake);
  }

private:
  nanoseconds so_far_ = 0;
};

} // namespace troupe
