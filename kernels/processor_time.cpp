// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/processor_time.hpp"

#include <pthread.h>

#include <stdexcept>

namespace troupe {

namespace {

/// Helpers' processor time during waits of this thread, less the thread's own.
thread_local nanoseconds difference_in_waits = 0;

} // namespace

processor_clock::processor_clock(std::thread::native_handle_type thread) {
  if (pthread_getcpuclockid(thread, &id_) != 0)
    throw std::runtime_error{"a thread has no clock of its processor time"};
}

nanoseconds processor_clock::now() const {
  constexpr nanoseconds second = 1'000'000'000;
  timespec time{};
  clock_gettime(id_, &time);
  return time.tv_sec * second + time.tv_nsec;
}

nanoseconds computing_time() {
  return processor_clock{}.now() + difference_in_waits;
}

void count_wait(nanoseconds waited, nanoseconds computed) {
  difference_in_waits += computed - waited;
}

} // namespace troupe
