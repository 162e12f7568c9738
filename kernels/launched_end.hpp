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
/// The recorded start and end of a work are the times at which any thread first knew of
/// either. Threads of several streams report ends in any order; the end of a work
/// implies the end of all predecessors. So no work starts in the record before all
/// predecessors have ended, or ends before the recorded start. Thread-safe.
class launched_end {
public:
  /// \param predecessors the works that this work waits for: the previous one of the
  /// stream, and the writers of the inputs
  explicit launched_end(std::vector<std::shared_ptr<launched_end>> before = {})
    : before_(std::move(before)) {
    // nop
  }

  /// An event of the stream after the work's kernels; set once all kernels have been
  /// launched.
  const std::shared_ptr<void>& mark() const { return mark_; }
  void set_mark(std::shared_ptr<void> mark) { mark_ = std::move(mark); }

  /// Marks this work as receiver of `sender`'s transfer: this work may start first; the
  /// recorded end is never before the sender's.
  void takes_from(std::shared_ptr<launched_end> giver) {
    const std::lock_guard guard{all};
    if (ended_ != never)
      giver->end(ended_);
    else
      giver_ = std::move(giver);
  }

  /// Records that the work has started, and so that all predecessors have ended.
  /// Returns the recorded start time.
  nanoseconds begun(const wall_clock& clock) {
    const std::lock_guard guard{all};
    const auto now = clock.now();
    end_what_is_before(now);
    return ended_ == never ? now : ended_;
  }

  /// Records that the work has ended. Returns the time at which the end was first
  /// known.
  nanoseconds ended(const wall_clock& clock) {
    const std::lock_guard guard{all};
    return end(clock.now());
  }

private:
  static constexpr nanoseconds never = -1;

  nanoseconds end(nanoseconds now) {
    if (ended_ == never) {
      ended_ = now;
      end_what_is_before(now);
      if (auto giver = std::exchange(giver_, {}))
        giver->end(now);
    }
    return ended_;
  }

  void end_what_is_before(nanoseconds now) {
    for (const auto& one : std::exchange(before_, {}))
      one->end(now);
  }

  static inline std::mutex all; // locked a few times an action
  std::shared_ptr<void> mark_;
  std::vector<std::shared_ptr<launched_end>> before_; // not known to have ended
  std::shared_ptr<launched_end>
    giver_; // not known to have ended; null without a sender
  nanoseconds ended_ = never;
};

} // namespace troupe
