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
class receive_queue {
public:
  void put(Entry entry) {
    {
      const std::lock_guard guard{lock_};
      entries_.push_back(std::move(entry));
    }
    news_.notify_one();
  }

  /// Returns the next entry, in the order of put(); absent if none comes within
  /// `timeout`.
  std::optional<Entry> take(std::chrono::milliseconds timeout) {
    std::unique_lock guard{lock_};
    if (!news_.wait_for(guard, timeout, [this] { return !entries_.empty(); }))
      return {};
    auto result = std::move(entries_.front());
    entries_.pop_front();
    return result;
  }

private:
  std::mutex lock_;
  std::condition_variable news_;
  std::deque<Entry> entries_;
};

} // namespace troupe
