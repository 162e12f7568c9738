// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "messaging/links/byte_stream.hpp"

#include <sys/eventfd.h>

namespace troupe {

/// Wakes a thread that polls. Any thread may call.
class waker {
public:
  void wake() const { eventfd_write(event_.get(), 1); }

  /// For the thread that was woken, before it looks what for.
  void hear() const {
    eventfd_t count = 0;
    (void)eventfd_read(event_.get(), &count);
  }

  /// To wait for: readable once somebody has woken.
  int descriptor() const { return event_.get(); }

private:
  socket_descriptor event_{eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)};
};

} // namespace troupe
