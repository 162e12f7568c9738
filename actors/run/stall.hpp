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

/// Text of a stall: a line for each actor that waits, with the input and, if known, the
/// sender. First come sentences about user code that has to proceed, as the actors wait
/// for that code. Without such code the cycle of waiting actors comes first, if there
/// is one. If no answer names an input or user code, the text says so.
std::string describe_stall(const std::vector<mail::waiting_for>& answers);

/// A device or reader of a run whose tasks are watched.
struct watched {
  std::string name;
  const occupation* seen; ///< Not owned; outlives the rule that watches.
  /// Text of a task, for example "running F3 of stage 2".
  std::function<std::string(const task&)> doing;
  int allowed_timeouts = 1; ///< Number of stall timeouts that a task may always take.
};

/// Distinguishes a run that has stalled from one that is slow. A run has stalled when
/// no task has ended for as long as the timeout, and no task under way may take longer.
/// A task may take the allowed timeouts, or twenty times the longest task so far of
/// that kind on that device, whichever is longer. Before 32 tasks of that kind have
/// ended there, a task may also take the time of its operations at 0.1 GFLOP/s.
class stall_rule {
public:
  stall_rule(std::vector<watched> watched_tasks, std::chrono::milliseconds timeout);

  enum class verdict : std::uint8_t {
    fine, ///< A task has ended within the timeout, or the run has just begun.
    /// No task has ended for as long as the timeout, but some task may take longer.
    slow,
    stalled, ///< No task has ended in time, and none under way may take longer.
  };

  /// Judges the run at time `now`. One thread at a time calls look().
  /// \param now nanoseconds on the run's clock
  /// \param waited total nanoseconds for which the caller has waited for the run, which
  /// the timeout measures; never decreases
  verdict look(nanoseconds now, nanoseconds waited);

  /// Returns a line for each task under way: the task, the time since the task began,
  /// and the longest time of such a task. Empty if no task is under way. Any thread may
  /// call.
  /// \param now nanoseconds on the run's clock
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
/// actor waits for, and watches no longer. While a run is slow, posts the tasks under
/// way for progress::waits_for. The watchdog has a thread of its own: the actors'
/// threads may all be at work that never ends.
class stall_watchdog {
public:
  /// The functions and texts that the watchdog uses. All functions are called on the
  /// watchdog's thread.
  struct controls {
    std::function<stall_rule::verdict()> look;  ///< Judges the run now.
    std::function<std::string()> at_work;       ///< Lines about tasks under way.
    std::function<void()> request_explanations; ///< Makes actors post explanations.
    std::function<void()> help;     ///< Starts one more thread for actors' answers.
    std::vector<std::string> asked; ///< Names of the actors that should answer.
    /// Appended to the names of actors that give no answer: ": REASON"; may be empty.
    std::string silence;
  };

  /// \param timeout the time in the text of a stall; a tenth, at most 250 ms, passes
  /// between calls of `look`, which decides
  /// \param status outlives this object
  /// \param run functions whose objects outlive this object
  /// \throws no_thread
  stall_watchdog(std::chrono::milliseconds timeout, run_status& status, controls run);
  /// Ends the watchdog's thread, and waits for that thread.
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
