// SPDX-License-Identifier: BSD-3-Clause
// The completion of a work on a GPU: an event for other streams, and the recorded start
// and end.
#pragma once

#include "kernels/occupation.hpp"

#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace troupe {

/// The completion of a work that a GPU may still run, shared with the works that depend
/// on that completion. Works of other streams can be launched to start after event().
/// The recorded start and end are the times at which a thread first knew of the start
/// or the end. Threads of several streams report ends in any order; the end of a work
/// implies the end of all predecessors. So no work starts in the record before all
/// predecessors have ended, or ends before the recorded start. Thread-safe, except that
/// set_mark() must have returned before another thread calls event().
class gpu_completion {
public:
  /// \param predecessors the works that this work waits for: the previous one of the
  /// stream, and the writers of the inputs
  explicit gpu_completion(
    std::vector<std::shared_ptr<gpu_completion>> predecessors = {})
    : predecessors_(std::move(predecessors)) {
    // nop
  }

  /// An event of the stream after the work's kernels; null until set_mark(). The launch
  /// calls set_mark() after all kernels, if the work has a callback `launched`.
  const std::shared_ptr<void>& event() const { return event_; }
  void set_mark(std::shared_ptr<void> event) { event_ = std::move(event); }

  /// Marks this work as receiver of `sender`'s transfer: this work may start first; the
  /// recorded end is never before the sender's. At most one sender per work.
  void receives_from(std::shared_ptr<gpu_completion> sender) {
    const std::lock_guard guard{lock_};
    if (ended_ != never)
      sender->end(ended_);
    else
      sender_ = std::move(sender);
  }

  /// Records that the work has started. All predecessors have therefore ended, and are
  /// recorded as ended. Returns the recorded start time: now, or the recorded end if
  /// the work is already known to have ended.
  nanoseconds record_start(const wall_clock& clock) {
    const std::lock_guard guard{lock_};
    const auto now = clock.now();
    end_predecessors(now);
    return ended_ == never ? now : ended_;
  }

  /// Records that the work has ended. Returns the time at which the end was first
  /// known.
  nanoseconds record_end(const wall_clock& clock) {
    const std::lock_guard guard{lock_};
    return end(clock.now());
  }

private:
  static constexpr nanoseconds never = -1;

  nanoseconds end(nanoseconds now) {
    if (ended_ == never) {
      ended_ = now;
      end_predecessors(now);
      if (auto sender = std::exchange(sender_, {}))
        sender->end(now);
    }
    return ended_;
  }

  void end_predecessors(nanoseconds now) {
    for (const auto& predecessor : std::exchange(predecessors_, {}))
      predecessor->end(now);
  }

  static inline std::mutex lock_; // locked a few times an action
  std::shared_ptr<void> event_;
  std::vector<std::shared_ptr<gpu_completion>> predecessors_; // not known to have ended
  std::shared_ptr<gpu_completion>
    sender_; // not known to have ended; null without a sender
  nanoseconds ended_ = never;
};

} // namespace troupe
