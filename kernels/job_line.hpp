// SPDX-License-Identifier: BSD-3-Clause
// The queue of a device, which starts works in the order of turns.
#pragma once

#include "kernels/device.hpp"

#include <cstdint>
#include <deque>
#include <map>

namespace troupe {

/// Work of a device, and the callback for the end of the work.
struct device_job {
  work item;
  device::on_end ended;
};

/// The queue of works of a device, in order. Several actors enqueue works with turns,
/// and one actor may be late: a work waits here until all works of lower turns have
/// been enqueued. Works without a turn go to the end of the line. For one thread at a
/// time.
class job_line {
public:
  void add(device_job next);

  /// True if no work can run now.
  bool empty() const { return line_.empty(); }

  /// True if no work is enqueued, in line or with a later turn.
  bool idle() const { return line_.empty() && early_.empty(); }

  /// Removes and returns the first work in line.
  /// \pre !empty()
  device_job next();

  /// Drops all works.
  void clear();

private:
  std::deque<device_job> line_;
  std::map<std::int64_t, device_job> early_; // by turn
  std::int64_t turn_ = 0;                    // the next turn to enter the line
};

} // namespace troupe
