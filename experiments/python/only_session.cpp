// SPDX-License-Identifier: BSD-3-Clause
#include "experiments/python/only_session.hpp"

#include "actors/run/local_run.hpp"
#include "experiments/session/interruption.hpp"

#include <pybind11/pybind11.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <new>
#include <stdexcept>
#include <thread>

namespace troupe::python {

namespace {

std::mutex mutex;
std::condition_variable has_ended;
bool is_under_way = false;
std::atomic<bool> ends = false, is_interrupted = false;
std::thread::id ending_thread; // set before `ends`

} // namespace

only_session::only_session() {
  const std::lock_guard lock{mutex};
  if (ends)
    throw std::runtime_error{"the interpreter ends: no run begins"};
  if (is_under_way)
    throw std::runtime_error{"another run of this process is under way: wait for its "
                             "end, or start another process"};
  is_under_way = true;
  is_interrupted = false;
}

only_session::~only_session() {
  const std::lock_guard lock{mutex};
  is_under_way = false;
  has_ended.notify_all();
}

bool only_session::end() {
  constexpr auto interval = std::chrono::milliseconds{50};
  const auto latest = std::chrono::steady_clock::now() + std::chrono::seconds{30};
  std::unique_lock lock{mutex};
  ending_thread = std::this_thread::get_id();
  ends = true;
  while (is_under_way && std::chrono::steady_clock::now() < latest) {
    interrupt(true); // again: a session that begins clears the flag
    has_ended.wait_for(lock, interval);
  }
  if (!is_under_way && !is_at_work())
    return false;
  ::on_exit(
    [](int status, void*) {
      std::fflush(nullptr);
      std::_Exit(status);
    },
    nullptr);
  return true;
}

void only_session::stay_if_python_ends() {
  if (!ends || ending_thread == std::this_thread::get_id())
    return;
  const pybind11::gil_scoped_release free;
  for (;;)
    std::this_thread::sleep_for(std::chrono::hours{1});
}

void only_session::forget() {
  new (&mutex) std::mutex; // a thread of the parent may hold it
  new (&has_ended) std::condition_variable;
  is_under_way = ends = false;
}

bool only_session::python_ends() {
  return ends;
}

void note_interrupt() {
  is_interrupted = true;
}

bool was_interrupted() {
  return is_interrupted;
}

} // namespace troupe::python
