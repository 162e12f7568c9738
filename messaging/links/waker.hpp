// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "messaging/links/byte_stream.hpp"

#include <sys/eventfd.h>

namespace troupe {

/// Wakes a thread that waits in poll(). Thread: any.
class waker {
public:
  void wake() const { eventfd_write(event_.get(), 1); }

  /// Resets the waker. Called by the woken thread, before the thread looks for work.
  void reset() const {
    eventfd_t count = 0;
    (void)eventfd_read(event_.get(), &count);
  }

  /// A descriptor for poll(): readable after wake().
  int descriptor() const { return event_.get(); }

private:
  socket_descriptor event_{eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)};
};

} // namespace troupe
