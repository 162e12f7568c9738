// SPDX-License-Identifier: BSD-3-Clause
// Starts threads with a clear error, and counts the threads that can still be started.
#pragma once

#include <functional>
#include <stdexcept>
#include <thread>

namespace troupe {

/// A thread that could not be started; what() is a sentence for users.
struct no_thread : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Starts a thread.
/// \param total number of threads that the caller starts, for the error message
/// \throws no_thread
std::thread start_thread(int total, std::function<void()> work);

/// Number of threads that the system lets this process start now, in addition to the
/// existing threads. Counts by starting and ending threads.
/// \param most starts at most this number
int count_of_free_threads(int most);

} // namespace troupe
