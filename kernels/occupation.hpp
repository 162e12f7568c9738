// SPDX-License-Identifier: BSD-3-Clause
// The clock of a run, and the current task of each device and reader for the stall
// watchdog.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace troupe {

/// Nanoseconds on a run's clock.
using nanoseconds = std::int64_t;

/// Wall time since the start of the run, in nanoseconds and without pauses. Any thread
/// may read the time; one thread at a time sets, pauses or resumes the clock.
class wall_clock {
public:
  wall_clock();

  nanoseconds now() const;
  /// Starts again at time 0; ends a pause.
  void restart();
  /// Sets time 0 to a time of steady(); ends a pause.
  void restart_at(nanoseconds steady_time);
  void pause();  ///< Stops the clock at the current time.
  void resume(); ///< Continues from the time of the pause.

  /// The time now, in nanoseconds, of the clock that all processes of this machine
  /// share.
  static nanoseconds steady();

private:
  std::atomic<nanoseconds> state_; // steady time at 0; while paused -now() - 1
};

/// The operation that a device or a data reader executes now, for the stall watchdog.
struct task {
  int kind = 0; ///< Kind that the caller distinguishes: 0 to 7.
  int stage = 0;
  int microbatch = -1;   ///< Index; -1 if the task has none.
  double operations = 0; ///< Floating-point operations; 0 if not known.
};

/// The current task of one device or one reader, for the stall watchdog. The owner
/// starts and ends tasks, one after another, on one thread at a time; any thread may
/// read.
class occupation {
public:
  /// \param clock outlives this object
  explicit occupation(const wall_clock& clock) : clock_(clock) {
    // nop
  }

  const wall_clock& clock() const { return clock_; }

  /// Starts a task, and returns the time on the clock in nanoseconds.
  /// \pre no task is under way
  nanoseconds begin(const task& next);

  /// Ends the task, and returns the time on the clock in nanoseconds.
  /// \pre a task is under way
  nanoseconds end();

  struct view {
    task current;
    nanoseconds since; ///< The time on the clock at which the task started.
  };

  /// Returns the task under way and its start time; absent if there is none, or if the
  /// task ends during the call.
  std::optional<view> now() const;

  /// Number of tasks of a kind that have ended.
  std::int64_t ended(int kind) const { return statistics(kind).ended; }

  /// Longest duration, in nanoseconds, of an ended task of a kind; 0 if none has ended.
  nanoseconds longest(int kind) const { return statistics(kind).longest; }

  /// Number of ended tasks of all kinds.
  std::int64_t ended() const;

private:
  struct kind_of_task {
    std::atomic<std::int64_t> ended{0};
    std::atomic<nanoseconds> longest{0};
  };

  const kind_of_task& statistics(int kind) const {
    return kinds_[static_cast<std::size_t>(kind)];
  }

  const wall_clock& clock_;
  std::atomic<nanoseconds> since_{-1};
  std::atomic<int> kind_{0}, stage_{0}, microbatch_{-1};
  std::atomic<double> operations_{0};
  std::array<kind_of_task, 8> kinds_;
};

/// Starts a task in the constructor, and ends the task in the destructor at the latest,
/// also after an exception.
class occupied {
public:
  /// \param owner outlives this object, and has no task under way
  occupied(occupation& owner, const task& next)
    : owner_(owner), start_(owner.begin(next)) {
    // nop
  }
  ~occupied() {
    if (!ended_)
      owner_.end();
  }
  occupied(const occupied&) = delete;
  occupied& operator=(const occupied&) = delete;

  /// The time on the clock at which the task started.
  nanoseconds start() const { return start_; }
  /// Ends the task, and returns the time on the clock; at most one call.
  nanoseconds end() {
    ended_ = true;
    return owner_.end();
  }

private:
  occupation& owner_;
  nanoseconds start_;
  bool ended_ = false;
};

} // namespace troupe
