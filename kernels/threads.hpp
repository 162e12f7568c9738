// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>
#include <stdexcept>
#include <thread>

namespace troupe {

/// A thread that could not be started; what() is a sentence for users.
struct no_thread : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Starts a thread. \param of how many its owner needs \throws no_thread
std::thread start_thread(int of, std::function<void()> work);

/// Threads that the system lets this process start now, beyond those it has.
/// \param most starts no more than so many, and ends them
int count_of_free_threads(int most);

} // namespace troupe
