// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "kernels/occupation.hpp"

#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace troupe {

/// A work that a GPU may still be at, as others know it. Works of other streams can be
/// launched behind its mark. When it began and ended is what somebody here knew first:
/// threads of several streams tell of ends in any order, and who knows that a work is
/// over knows the same of all that it came behind. So no work begins before those have
/// ended, or ends before it began. Thread-safe.
class launched_end {
public:
  /// \param before what it comes behind: the work before it on its stream, and those
  /// that write what it reads
  explicit launched_end(std::vector<std::shared_ptr<launched_end>> before = {})
    : before_(std::move(before)) {
    // nop
  }

  /// A mark of its stream behind its kernels, once all of these have been launched.
  const std::shared_ptr<void>& mark() const { return mark_; }
  void set_mark(std::shared_ptr<void> mark) { mark_ = std::move(mark); }

  /// It takes what another one gives: it may begin before, and is over behind it.
  void takes_from(std::shared_ptr<launched_end> giver) {
    const std::lock_guard guard{all};
    if (ended_ != never)
      giver->end(ended_);
    else
      giver_ = std::move(giver);
  }

  /// Somebody knows now that it has begun, as what it comes behind is over. Returns
  /// when that is for the record.
  nanoseconds begun(const wall_clock& clock) {
    const std::lock_guard guard{all};
    const auto now = clock.now();
    end_what_is_before(now);
    return ended_ == never ? now : ended_;
  }

  /// Somebody knows now that it is over. Returns when that was first known.
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

  static inline std::mutex all; // taken a few times an action
  std::shared_ptr<void> mark_;
  std::vector<std::shared_ptr<launched_end>> before_; // not known to be over
  std::shared_ptr<launched_end> giver_;               // likewise; null: there is none
  nanoseconds ended_ = never;
};

} // namespace troupe
