#pragma once

#include "kernels/occupation.hpp"

#include <algorithm>
#include <atomic>
#include <memory>
#include <utility>

namespace troupe {

/// The end of a work that a GPU may still be at. Works of other streams can be launched
/// behind it.
class launched_end {
public:
  /// \param mark of its stream, behind its kernels
  explicit launched_end(std::shared_ptr<void> mark) : mark_(std::move(mark)) {
    // nop
  }

  const std::shared_ptr<void>& mark() const { return mark_; }

  /// Somebody sees now that it has come. Returns when it was first seen: what follows
  /// it never begins before it. From any thread.
  nanoseconds seen(nanoseconds now) {
    nanoseconds first = never;
    return first_seen_.compare_exchange_strong(first, now) ? now : std::min(first, now);
  }

private:
  static constexpr nanoseconds never = -1;

  std::shared_ptr<void> mark_;
  std::atomic<nanoseconds> first_seen_ = never;
};

} // namespace troupe
