// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/cuda/on_host/stream_queue.hpp"

#include "kernels/cuda/on_host/launch_registry.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

class gpu_on_host {
public:
  gpu_on_host() : thread_([this] { serve(); }) {
    // nop
  }

  ~gpu_on_host() {
    {
      const std::lock_guard guard{lock_};
      is_ending_ = true;
    }
    news_.notify_one();
    thread_.join();
  }

  gpu_on_host(const gpu_on_host&) = delete;
  gpu_on_host& operator=(const gpu_on_host&) = delete;

  static gpu_on_host& only() {
    static gpu_on_host instance;
    return instance;
  }

  void seed(std::uint64_t value) {
    const std::lock_guard guard{lock_};
    dice_.seed(value);
  }

  void add(CUstream_st& to, CUstream_st::piece queued) {
    {
      const std::lock_guard guard{lock_};
      const bool was_busy = !to.pieces_.empty() || !to.ends_.empty();
      to.pieces_.push_back(std::move(queued));
      if (!was_busy)
        busy_.push_back(&to);
    }
    news_.notify_one();
  }

  /// Waits until a stream is idle. Returns the exception of a failed launch, or null.
  std::exception_ptr wait_for(CUstream_st& stream) {
    std::unique_lock guard{lock_};
    idle_.wait(guard, [&] { return stream.is_idle(); });
    return stream.failure_;
  }

private:
  void serve() {
    std::unique_lock guard{lock_};
    for (;;) {
      news_.wait(guard, [this] { return is_ending_ || !busy_.empty(); });
      if (busy_.empty())
        return;
      if (dice_() % 8 == 0) // lets launching threads get ahead
        news_.wait_for(guard, std::chrono::microseconds{dice_() % 200},
                       [this] { return is_ending_; });
      auto& stream = *busy_[dice_() % busy_.size()];
      stream.is_running_ = true;
      if (stream.is_stalled_ && stream.ends_.empty())
        poll(stream, guard);
      else if (!stream.pieces_.empty() && !stream.is_stalled_
               && (stream.ends_.empty() || dice_() % 4 > 0))
        run_next(stream, guard);
      else if (dice_() % 4 == 0 || !launches_wait())
        run_callback(stream, guard);
      stream.is_running_ = false;
      if (stream.is_idle())
        idle_.notify_all();
    }
  }

  /// Whether some stream has a launch to run; ends may then be reported late.
  bool launches_wait() const {
    return std::ranges::any_of(
      busy_, [](const auto* s) { return !s->pieces_.empty() && !s->is_stalled_; });
  }

  /// Polls a stalled stream, and continues the stream if the launch has ended. If all
  /// streams stall, some time passes. If streams wait for each other, all streams of
  /// the cycle fail.
  void poll(CUstream_st& stream, std::unique_lock<std::mutex>& guard) {
    const auto first = stream.pieces_.front().shared;
    guard.unlock();
    const bool done =
      !stream.failure_ && stream.try_call([&] { return first->done(); });
    guard.lock();
    if (!done && !stream.failure_)
      fail_cycle(stream);
    if (done || stream.failure_) {
      stream.is_stalled_ = false;
      stream.pieces_.pop_front();
      rest_if_done(stream);
    } else if (std::ranges::all_of(busy_, [](const auto* s) {
                 return s->is_stalled_ && s->ends_.empty();
               })) {
      news_.wait_for(guard, std::chrono::microseconds{50},
                     [this] { return is_ending_; });
    }
  }

  /// Follows the waits from a stream on. If the chain comes back to the stream, all
  /// streams of the chain fail.
  void fail_cycle(CUstream_st& from) {
    std::string text;
    std::vector<CUstream_st*> seen;
    for (auto* waiting_stream = &from;
         waiting_stream != nullptr
         && std::ranges::find(seen, waiting_stream) == seen.end();) {
      seen.push_back(waiting_stream);
      const auto next = waiting_stream->pieces_.front().shared->waits_for();
      text += (text.empty() ? "" : "; ") + next.text;
      const auto entry = std::ranges::find_if(busy_, [&](const auto* s) {
        return s->number_ == next.stream && s->is_stalled_ && !s->failure_;
      });
      if (entry == busy_.end())
        return;
      waiting_stream = *entry;
      if (waiting_stream == &from)
        for (auto* const stalled : seen)
          stalled->failure_ = std::make_exception_ptr(
            std::runtime_error{"streams wait for each other: " + text});
    }
  }

  /// Runs the callback of an end that the stream has come to.
  void run_callback(CUstream_st& stream, std::unique_lock<std::mutex>& guard) {
    auto end = std::move(stream.ends_.front());
    stream.ends_.pop_front();
    rest_if_done(stream);
    guard.unlock();
    troupe::on_host::report_end(stream.number_, end.launch);
    end.callback(end.failure);
    end = {}; // captures are destroyed before the stream is idle
    guard.lock();
  }

  void run_next(CUstream_st& stream, std::unique_lock<std::mutex>& guard) {
    if (const auto shared = stream.pieces_.front().shared; shared && !stream.failure_) {
      guard.unlock();
      const bool comes = stream.try_call([&] {
        shared->arrive();
        return true;
      });
      guard.lock();
      stream.is_stalled_ = comes;
      if (comes)
        return;
    }
    auto next_piece = std::move(stream.pieces_.front());
    stream.pieces_.pop_front();
    if (next_piece.callback) {
      stream.ends_.push_back({std::move(next_piece.callback),
                              troupe::on_host::last_launch(), stream.failure_});
      return;
    }
    rest_if_done(stream);
    guard.unlock();
    if (next_piece.launch)
      stream.run(next_piece);
    else if (next_piece.shared)
      next_piece.shared->give_up(stream.failure_);
    next_piece = {};
    guard.lock();
  }

  void rest_if_done(CUstream_st& stream) {
    if (stream.pieces_.empty() && stream.ends_.empty())
      std::erase(busy_, &stream);
  }

  std::mutex lock_;
  std::condition_variable news_, idle_;
  std::vector<CUstream_st*> busy_; // in the order of becoming busy
  std::mt19937_64 dice_{1};
  bool is_ending_ = false;
  std::thread thread_;
};

namespace {

std::atomic<int> streams = 0;

} // namespace

CUstream_st::CUstream_st() : number_(++streams) {
  gpu_on_host::only();
}

CUstream_st::~CUstream_st() {
  gpu_on_host::only().wait_for(*this);
}

void CUstream_st::enqueue(std::function<void()> launch) {
  gpu_on_host::only().add(*this, {.launch = std::move(launch),
                                  .issued = troupe::on_host::next_instant(),
                                  .name = name_});
}

void CUstream_st::enqueue(std::shared_ptr<shared_launch> launch) {
  gpu_on_host::only().add(*this, {.shared = std::move(launch)});
}

void CUstream_st::on_complete(completion_callback callback) {
  gpu_on_host::only().add(*this, {.callback = std::move(callback)});
}

void CUstream_st::wait() {
  const auto failure = gpu_on_host::only().wait_for(*this);
  troupe::on_host::report_end(number_, troupe::on_host::last_launch());
  if (failure)
    std::rethrow_exception(failure);
}

/// Called on the GPU's thread.
void CUstream_st::run(const piece& launched) {
  if (failure_)
    return;
  try {
    troupe::on_host::run_on_stream(number_, launched.issued, launched.name,
                                   launched.launch);
  } catch (...) {
    failure_ = std::current_exception();
  }
}

/// Called on the GPU's thread. False if the stream has failed.
bool CUstream_st::try_call(const std::function<bool()>& question) {
  try {
    return question();
  } catch (...) {
    failure_ = std::current_exception();
    return false;
  }
}

namespace troupe::on_host {

void seed_streams(std::uint64_t seed) {
  gpu_on_host::only().seed(seed);
}

} // namespace troupe::on_host
