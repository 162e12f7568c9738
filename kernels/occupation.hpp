// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace troupe {

/// Time on a run's clock.
using nanoseconds = std::int64_t;

/// Wall time since the run began, without the time during which it was paused.
class wall_clock {
public:
  wall_clock();

  nanoseconds now() const;
  void restart();                           ///< From 0.
  void restart_at(nanoseconds steady_time); ///< Which is 0.
  void pause();
  void resume();

  /// The clock that all of this machine's processes share.
  static nanoseconds steady();

private:
  std::atomic<nanoseconds> state_; // steady time at 0; while paused -now() - 1
};

/// What somebody of a run is at: an action on a device, or the reading of samples.
struct task {
  int kind = 0; ///< Of those that the caller tells apart: 0 to 7.
  int stage = 0;
  int microbatch = -1;   ///< -1: of none.
  double operations = 0; ///< Floating-point operations, as far as they are known.
};

/// What one device or one reader is doing, for whoever watches over a run. Its owner
/// begins and ends tasks, one after another; any thread may look.
class occupation {
public:
  explicit occupation(const wall_clock& clock) : clock_(clock) {
    // nop
  }

  const wall_clock& clock() const { return clock_; }

  /// These return the time.
  nanoseconds begin(const task& what);
  nanoseconds end();

  struct view {
    task what;
    nanoseconds since;
  };

  /// The task under way; absent if there is none.
  std::optional<view> now() const;

  /// How many tasks have ended, and the longest that one took; of a kind.
  std::int64_t ended(int kind) const { return of(kind).ended; }
  nanoseconds longest(int kind) const { return of(kind).longest; }

  /// Of all kinds.
  std::int64_t ended() const;

private:
  struct kind_of_task {
    std::atomic<std::int64_t> ended{0};
    std::atomic<nanoseconds> longest{0};
  };

  const kind_of_task& of(int kind) const {
    return kinds_[static_cast<std::size_t>(kind)];
  }

  const wall_clock& clock_;
  std::atomic<nanoseconds> since_{-1};
  std::atomic<int> kind_{0}, stage_{0}, microbatch_{-1};
  std::atomic<double> operations_{0};
  std::array<kind_of_task, 8> kinds_;
};

/// Ends a task with its scope, also if that throws.
class occupied {
public:
  occupied(occupation& whose, const task& what)
    : whose_(whose), start_(whose.begin(what)) {
    // nop
  }
  ~occupied() {
    if (!ended_)
      whose_.end();
  }
  occupied(const occupied&) = delete;
  occupied& operator=(const occupied&) = delete;

  nanoseconds start() const { return start_; }
  nanoseconds end() {
    ended_ = true;
    return whose_.end();
  }

private:
  occupation& whose_;
  nanoseconds start_;
  bool ended_ = false;
};

} // namespace troupe
