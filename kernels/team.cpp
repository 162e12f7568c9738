// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/team.hpp"

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
      --busy;
    }
  }
};

team::team(int threads) : size_(std::max(threads, 1)) {
  if (size_ == 1)
    return;
  helpers_ = std::make_unique<helpers>();
  helpers_->threads.reserve(static_cast<std::size_t>(size_ - 1));
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
  while (h.busy.load() > 0) // each helper is in its last slice
    std::this_thread::yield();
  if (h.failure)
    std::rethrow_exception(h.failure);
}

} // namespace troupe
