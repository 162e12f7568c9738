// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/mail/handles.hpp"
#include "actors/run/notice_board.hpp"
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

/// Who waits for whom, in words. First what of the user's own has to go on, as the rest
/// waits for it, or else the cycle if there is one.
std::string describe_stall(const std::vector<mail::waiting_for>& answers);

/// Somebody of a run whose occupation is watched.
struct watched {
  std::string who;
  const occupation* seen;
  std::function<std::string(const task&)> doing; ///< "running F3 of stage 2"
  int patience = 1; ///< Stall timeouts that any task of its may take.
};

/// Tells a run that has stalled from one that only takes long. A run stalls when no
/// task has ended for as long as the timeout, and no task under way may still take
/// longer. A task may take the timeout, and twenty times the longest so far of its
/// kind. While few of its kind have ended, it may take what its operations would take a
/// very slow machine.
class stall_rule {
public:
  stall_rule(std::vector<watched> all, std::chrono::milliseconds timeout);

  enum class verdict : std::uint8_t {
    fine,
    slow, ///< No task has ended for as long as the timeout.
    stalled,
  };

  /// \param now on the run's clock
  /// \param waited how long the run has been waited for in all; never decreases
  verdict look(nanoseconds now, nanoseconds waited);

  /// Who is at what since when, a line each; empty if nobody is.
  std::string at_work(nanoseconds now) const;

  std::chrono::milliseconds timeout() const { return timeout_; }

private:
  nanoseconds allowance(const watched& whose, const task& what) const;

  std::vector<watched> all_;
  std::chrono::milliseconds timeout_;
  std::int64_t ended_ = 0;
  nanoseconds last_news_ = 0; // of time waited
};

/// Ends a run in real time that has stalled, with a report of what everybody waits for.
/// Has a thread of its own: the actors' threads may all be at work that never ends.
class watcher {
public:
  /// What the watcher may do with a run. All are called on its thread.
  struct controls {
    std::function<stall_rule::verdict()> look;
    std::function<std::string()> at_work;
    std::function<void()> ask;      ///< Makes actors put explanations on the board.
    std::function<void()> help;     ///< Gives them one more thread to answer on.
    std::vector<std::string> asked; ///< Who should answer.
    std::string silence; ///< What may keep them from it: ": a .."; empty: unknown.
  };

  /// \throws no_thread
  watcher(std::chrono::milliseconds timeout, notice_board& board, controls run);
  ~watcher();
  watcher(const watcher&) = delete;
  watcher& operator=(const watcher&) = delete;

private:
  void watch();
  bool sleep(std::chrono::milliseconds how_long);
  void report();
  std::string describe(const std::vector<mail::waiting_for>& answers) const;

  std::chrono::milliseconds timeout_;
  notice_board& board_;
  controls run_;
  std::mutex lock_;
  std::condition_variable wake_;
  bool stop_ = false;
  std::thread thread_;
};

} // namespace troupe
