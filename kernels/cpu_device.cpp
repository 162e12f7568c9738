#include "kernels/cpu_device.hpp"

#include "kernels/threads.hpp"

#include <utility>

namespace troupe {

void compute_permits::take(int threads) {
  std::unique_lock guard{lock_};
  const auto mine = asked_++;
  news_.wait(guard, [&] { return served_ == mine && free_ >= threads; });
  ++served_;
  free_ -= threads;
  guard.unlock();
  news_.notify_all(); // there may be some for the next
}

void compute_permits::give_back(int threads) {
  {
    const std::lock_guard guard{lock_};
    free_ += threads;
  }
  news_.notify_all();
}

cpu_device::cpu_device(occupation& seen, std::shared_ptr<cpu_sharing> shared,
                       int threads)
  : seen_(seen), shared_(std::move(shared)), threads_(threads) {
  if (shared_)
    thread_ = start_thread(1, [this] { serve(); });
}

cpu_device::~cpu_device() {
  {
    const std::lock_guard guard{lock_};
    ending_ = true;
  }
  news_.notify_all();
  if (thread_.joinable())
    thread_.join();
}

void cpu_device::enqueue(work what, on_end ended) {
  job next{std::move(what), std::move(ended)};
  {
    const std::lock_guard guard{lock_};
    if (stopped_)
      return;
    if (shared_ && (next.what.computes() || !jobs_.empty())) {
      jobs_.push_back(std::move(next));
      if (jobs_.size() == 1)
        news_.notify_one();
      return;
    }
  }
  run(next);
}

void cpu_device::run(job& next) {
  const auto& what = next.what;
  const bool computes = shared_ && what.computes();
  if (computes)
    shared_->permits.take(threads_);
  work_end result;
  {
    occupied now{seen_, {what.kind, what.stage, what.microbatch, what.operations}};
    result.start = now.start();
    try {
      if (what.run)
        what.run();
      for (const auto& part : what.parts) {
        if (part.run)
          part.run();
        if (part.over)
          part.over();
      }
    } catch (...) {
      result.failure = std::current_exception();
    }
    result.end = now.end();
  }
  if (computes)
    shared_->permits.give_back(threads_);
  next.ended(result);
}

void cpu_device::serve() {
  std::unique_lock guard{lock_};
  while (true) {
    news_.wait(guard, [this] { return ending_ || !jobs_.empty(); });
    if (ending_)
      return;
    auto& next = jobs_.front(); // stays where it is: others are added behind it
    guard.unlock();
    try {
      run(next);
    } catch (...) {
      if (shared_->broken)
        shared_->broken();
    }
    next = {}; // what it holds goes before the device is idle
    guard.lock();
    jobs_.pop_front();
  }
}

void cpu_device::stop() {
  const std::lock_guard guard{lock_};
  stopped_ = true;
  if (jobs_.size() > 1)
    jobs_.resize(1);
}

bool cpu_device::idle() const {
  const std::lock_guard guard{lock_};
  return jobs_.empty();
}

} // namespace troupe
