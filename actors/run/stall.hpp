// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/mail/handles.hpp"
#include "actors/run/run_status.hpp"
#include "kernels/occupation.hpp"

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace troupe {

/// Text of a stall: a line for each actor that waits, with the input and the sender.
/// First come sentences about user code that has to proceed, as the actors wait for
/// that code. Without such code the cycle of waiting actors comes first, if there is
/// one.
std::string describe_stall(const std::vector<mail::waiting_for>& answers);

/// A device or reader of a run whose tasks are watched.
struct watched {
  std::string name;
  const occupation* seen;
  /// Text of a task, for example "running F3 of stage 2".
  std::function<std::string(const task&)> doing;
  int allowed_timeouts = 1; ///< Number of stall timeouts that any task may take.
};

/// Distinguishes a run that has stalled from one that is slow. A run has stalled when
/// no task has ended for as long as the timeout, and every task under way has taken too
/// long. A task may take the allowed timeouts, or twenty times the longest task so far
/// of that kind, whichever is longer. While few tasks of that kind have ended, a task
/// may also take the time that its operations would take a very slow machine.
class stall_rule {
public:
  stall_rule(std::vector<watched> watched_tasks, std::chrono::milliseconds timeout);

  enum class verdict : std::uint8_t {
    fine,
    slow, ///< No task has ended for as long as the timeout.
    stalled,
  };

  /// Judges the run at time `now`.
  /// \param now nanoseconds on the run's clock
  /// \param waited total nanoseconds for which the run has been waited for; never
  /// decreases
  verdict look(nanoseconds now, nanoseconds waited);

  /// Returns lines that name each task under way, and the time since the task began;
  /// empty if no task is under way.
  std::string at_work(nanoseconds now) const;

  std::chrono::milliseconds timeout() const { return timeout_; }

private:
  nanoseconds time_budget(const watched& whose, const task& current_task) const;

  std::vector<watched> watched_tasks_;
  std::chrono::milliseconds timeout_;
  std::int64_t ended_ = 0;
  nanoseconds last_news_ = 0; // time waited when a task last ended
};

/// Ends a run in real time that has stalled: posts a failure that says which input each
/// actor waits for. The watchdog has a thread of its own: the actors' threads may all
/// be at work that never ends.
class stall_watchdog {
public:
  /// The functions and texts that the watchdog uses. All functions are called on the
  /// watchdog's thread.
  struct controls {
    std::function<stall_rule::verdict()> look;
    std::function<std::string()> at_work;
    std::function<void()> request_explanations; ///< Makes actors post explanations.
    std::function<void()> help;     ///< Starts one more thread for actors' answers.
    std::vector<std::string> asked; ///< Names of the actors that should answer.
    std::string silence; ///< The likely reason for no answer: ": a .."; empty: unknown.
  };

  /// \throws no_thread
  stall_watchdog(std::chrono::milliseconds timeout, run_status& status, controls run);
  ~stall_watchdog();
  stall_watchdog(const stall_watchdog&) = delete;
  stall_watchdog& operator=(const stall_watchdog&) = delete;

private:
  void watch();
  bool sleep(std::chrono::milliseconds how_long);
  void report();
  std::string describe(const std::vector<mail::waiting_for>& answers) const;

  std::chrono::milliseconds timeout_;
  run_status& status_;
  controls run_;
  std::mutex lock_;
  std::condition_variable wake_;
  bool stop_ = false;
  std::thread thread_;
};

} // namespace troupe
