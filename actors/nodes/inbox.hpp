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

/// A queue of entries received over control lines, for a thread that waits for entries.
/// Thread-safe.
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

  /// Returns the next entry; absent if none comes within `timeout`.
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
