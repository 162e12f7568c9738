// SPDX-License-Identifier: BSD-3-Clause
// The processor time of threads, by which a work is measured on a machine that runs
// other programs too.
#pragma once

#include "kernels/occupation.hpp"

#include <ctime>
#include <thread>

namespace troupe {

/// The system's clock of a thread's processor time. The clock stands while the thread
/// waits, or while other threads have its processor.
class processor_clock {
public:
  /// The clock of the calling thread.
  processor_clock() = default;

  /// The clock of another thread, which must not end before the last call of now().
  explicit processor_clock(std::thread::native_handle_type thread);

  /// Processor time of the thread in nanoseconds. A call takes about 0.4 us.
  nanoseconds now() const;

private:
  clockid_t id_ = CLOCK_THREAD_CPUTIME_ID;
};

/// The time in nanoseconds for which the calling thread has computed: its processor
/// time. While the thread waits for helpers of a team, the processor time of the helper
/// that computes longest counts in place of the thread's own. So the time of a work is
/// the wall time that the work takes on a machine without other programs, and not a
/// sum over threads.
nanoseconds computing_time();

/// Counts a wait of the calling thread in computing_time().
/// \param waited the thread's own processor time during the wait, in nanoseconds
/// \param computed processor time, during the wait, of the helper that computed longest
void count_wait(nanoseconds waited, nanoseconds computed);

} // namespace troupe
