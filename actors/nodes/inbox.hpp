// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "messaging/wire/codec.hpp"

#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <utility>

namespace troupe {

/// What came over control lines for a thread that waits for it. Thread-safe.
template <class Entry>
class inbox {
public:
  void put(Entry what) {
    {
      const std::lock_guard guard{lock_};
      all_.push_back(std::move(what));
    }
    news_.notify_one();
  }

  /// The next one; absent if none comes for so long.
  std::optional<Entry> take(std::chrono::milliseconds patience) {
    std::unique_lock guard{lock_};
    if (!news_.wait_for(guard, patience, [this] { return !all_.empty(); }))
      return {};
    auto result = std::move(all_.front());
    all_.pop_front();
    return result;
  }

private:
  std::mutex lock_;
  std::condition_variable news_;
  std::deque<Entry> all_;
};

} // namespace troupe
