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
    if (shared_ && (next.what.computes() || busy_ || !jobs_.empty())) {
      jobs_.push_back(std::move(next));
      wanted_ = true;
      if (!busy_)
        news_.notify_one();
      return;
    }
  }
  next.ended(compute(next.what));
}

work_end cpu_device::compute(const work& what) {
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
  return result;
}

void cpu_device::tell(const job& done, const work_end& how) {
  if (shared_->visit)
    shared_->visit([&] { done.ended(how); }, [this] { return wanted_.load(); });
  else
    done.ended(how);
}

void cpu_device::serve() {
  std::unique_lock guard{lock_};
  while (true) {
    news_.wait(guard, [this] { return ending_ || !jobs_.empty(); });
    if (ending_)
      return;
    {
      auto next = std::move(jobs_.front());
      jobs_.pop_front();
      wanted_ = !jobs_.empty();
      busy_ = true;
      guard.unlock();
      try {
        tell(next, compute(next.what));
      } catch (...) {
        if (shared_->broken)
          shared_->broken();
      }
    } // what the work held goes before the device is idle
    guard.lock();
    busy_ = false;
  }
}

void cpu_device::stop() {
  const std::lock_guard guard{lock_};
  stopped_ = true;
  jobs_.clear();
  wanted_ = false;
}

bool cpu_device::idle() const {
  const std::lock_guard guard{lock_};
  return jobs_.empty() && !busy_;
}

} // namespace troupe
