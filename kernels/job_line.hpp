// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "kernels/device.hpp"

#include <cstdint>
#include <deque>
#include <map>

namespace troupe {

/// Work of a device, and who is told of its end.
struct device_job {
  work what;
  device::on_end ended;
};

/// What a device is to do, in order. Works with turns are enqueued by several actors,
/// one of which may be late: a work waits here until all of lower turns have been
/// enqueued. Works without go behind those that are in line. For one thread at a time.
class job_line {
public:
  void add(device_job next);

  /// Whether nothing can be done now.
  bool empty() const { return line_.empty(); }

  /// Whether nothing is enqueued, in line or before its turn.
  bool idle() const { return line_.empty() && early_.empty(); }

  /// Takes the first in line. \pre !empty()
  device_job next();

  /// Forgets all.
  void clear();

private:
  std::deque<device_job> line_;
  std::map<std::int64_t, device_job> early_; // by turn
  std::int64_t turn_ = 0;                    // that comes into line next
};

} // namespace troupe
