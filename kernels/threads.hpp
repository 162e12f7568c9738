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

} // namespace troupe
