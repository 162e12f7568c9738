// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "kernels/cuda/on_device/check.hpp"
#include "kernels/cuda/stream.hpp"

#include <cuda_runtime.h>

#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace troupe::cuda {

/// A thread that waits for events of a stream, one after another, and runs a callback
/// for each event.
class event_thread {
public:
  explicit event_thread(int gpu) : thread_([this, gpu] { serve(gpu); }) {
    // nop
  }

  /// Waits until all callbacks have returned.
  ~event_thread() {
    {
      const std::lock_guard guard{lock_};
      is_ending_ = true;
    }
    news_.notify_one();
    thread_.join();
    for (auto* const event : free_)
      cudaEventDestroy(event);
  }

  event_thread(const event_thread&) = delete;
  event_thread& operator=(const event_thread&) = delete;

  /// Runs `callback` on the thread, with the failure or null, when all work that is on
  /// the stream now has ended.
  /// \param callback must not throw, nor wait for this object
  /// \throws as check() does
  void add(cudaStream_t cuda_stream, stream::completion_callback callback) {
    {
      const std::lock_guard guard{lock_};
      cudaEvent_t event = nullptr;
      if (free_.empty()) {
        check(cudaEventCreateWithFlags(&event,
                                       cudaEventBlockingSync | cudaEventDisableTiming),
              "make an event");
        free_.push_back(event);
      }
      event = free_.back();
      check(cudaEventRecord(event, cuda_stream), "record an event");
      ends_.push_back({event, std::move(callback)});
      free_.pop_back();
    }
    news_.notify_one();
  }

  /// Waits until all callbacks have returned.
  void wait() {
    std::unique_lock guard{lock_};
    idle_.wait(guard, [this] { return ends_.empty(); });
  }

private:
  struct end {
    cudaEvent_t event;
    stream::completion_callback callback;
  };

  void serve(int gpu) {
    try {
      use(gpu);
    } catch (...) {
      // this thread only waits for events
    }
    std::unique_lock guard{lock_};
    for (;;) {
      news_.wait(guard, [this] { return is_ending_ || !ends_.empty(); });
      if (ends_.empty())
        return;
      auto callback = std::move(ends_.front().callback);
      auto* const event = ends_.front().event;
      guard.unlock();
      std::exception_ptr failure;
      try {
        check(cudaEventSynchronize(event), "compute");
      } catch (...) {
        failure = std::current_exception();
      }
      callback(failure);
      callback = {}; // captures are destroyed before wait() may return
      guard.lock();
      ends_.pop_front();
      free_.push_back(event);
      if (ends_.empty())
        idle_.notify_all();
    }
  }

  std::mutex lock_;
  std::condition_variable news_, idle_;
  std::deque<end> ends_;
  std::vector<cudaEvent_t> free_;
  bool is_ending_ = false;
  std::thread thread_;
};

} // namespace troupe::cuda
