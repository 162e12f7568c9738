// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/team.hpp"

#include "kernels/processor_time.hpp"
#include "kernels/threads.hpp"

#include <atomic>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace troupe {

namespace {

/// Number of checks that a waiting thread makes before sleeping: tens of microseconds,
/// the gap between two kernels of one action.
constexpr int looks_before_sleep = 2000;

/// Number of checks that a caller makes before the wait for helpers is measured: a few
/// microseconds, as the measurement takes one or two.
constexpr int looks_before_measuring = 100;

} // namespace

struct team::helpers {
  helpers() = default;
  helpers(const helpers&) = delete;
  helpers& operator=(const helpers&) = delete;

  ~helpers() {
    {
      const std::lock_guard guard{lock};
      stop = true;
    }
    wake.notify_all();
    for (auto& thread : threads)
      thread.join();
  }

  std::mutex lock;
  std::condition_variable wake;
  std::atomic<std::uint64_t> round{0}; // changes under the lock
  bool stop = false;

  // The work of this round. The round closes when the caller finds no more slices.
  bool open = false;
  int slices = 0;
  const void* context = nullptr;
  call work = nullptr;
  std::atomic<int> next_slice{0};
  std::atomic<int> busy{0}; // helpers that have joined this round and have not finished
  std::exception_ptr failure;

  // The caller's measured wait. A helper that ends its last slice during the wait
  // reports its processor time since the start of the wait.
  struct helper_time {
    nanoseconds at_start = 0;
    nanoseconds computed = 0;
  };
  std::atomic<bool> is_measured{false};
  std::vector<helper_time> times; // by worker - 1

  std::vector<std::thread> threads;

  void take_slices(int worker) {
    try {
      for (int slice = next_slice++; slice < slices; slice = next_slice++)
        work(context, slice, worker);
    } catch (...) {
      const std::lock_guard guard{lock};
      if (!failure)
        failure = std::current_exception();
    }
  }

  void help(int worker) {
    for (std::uint64_t seen = 0;;) {
      for (int i = 0; i < looks_before_sleep && round.load() == seen; ++i)
        __builtin_ia32_pause();
      {
        std::unique_lock guard{lock};
        wake.wait(guard, [&] { return round.load() != seen || stop; });
        if (stop)
          return;
        seen = round.load();
        if (!open)
          continue; // the round has closed: the caller no longer waits
        ++busy;
      }
      take_slices(worker);
      if (is_measured) {
        auto& time = times[static_cast<std::size_t>(worker - 1)];
        time.computed = processor_clock{}.now() - time.at_start;
      }
      --busy;
    }
  }

  /// Waits until all helpers have ended their last slices.
  void wait_for_helpers() {
    for (int i = 0; i < looks_before_measuring && busy.load() > 0; ++i)
      __builtin_ia32_pause();
    if (busy.load() == 0)
      return;
    const processor_clock clock;
    const auto start = clock.now();
    for (std::size_t i = 0; i < threads.size(); ++i)
      times[i] = {processor_clock{threads[i].native_handle()}.now(), 0};
    is_measured = true;
    while (busy.load() > 0)
      std::this_thread::yield();
    is_measured = false;
    nanoseconds longest = 0;
    for (const auto& time : times)
      longest = std::max(longest, time.computed);
    count_wait(clock.now() - start, longest);
  }
};

team::team(int threads) : size_(std::max(threads, 1)) {
  if (size_ == 1)
    return;
  helpers_ = std::make_unique<helpers>();
  helpers_->threads.reserve(static_cast<std::size_t>(size_ - 1));
  helpers_->times.resize(static_cast<std::size_t>(size_ - 1));
  for (int worker = 1; worker < size_; ++worker)
    helpers_->threads.push_back(
      start_thread(size_, [h = helpers_.get(), worker] { h->help(worker); }));
}

team::~team() = default;

void team::run_on_helpers(int slices, const void* context, call work) {
  auto& h = *helpers_;
  {
    const std::lock_guard guard{h.lock};
    h.slices = slices;
    h.context = context;
    h.work = work;
    h.next_slice = 0;
    h.failure = nullptr;
    h.open = true;
    ++h.round;
  }
  h.wake.notify_all();
  h.take_slices(0);
  {
    const std::lock_guard guard{h.lock};
    h.open = false;
  }
  h.wait_for_helpers();
  if (h.failure)
    std::rethrow_exception(h.failure);
}

} // namespace troupe
