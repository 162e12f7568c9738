// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/cpu_device.hpp"

#include "kernels/threads.hpp"

#include <algorithm>
#include <utility>

namespace troupe {

compute_threads::compute_threads(int count, int at_once) : free_(at_once) {
  threads_.reserve(static_cast<std::size_t>(count));
  try {
    for (int i = 0; i < count; ++i)
      threads_.push_back(start_thread(count, [this] { serve(); }));
  } catch (const no_thread&) {
    end();
    throw;
  }
}

compute_threads::~compute_threads() {
  end();
}

void compute_threads::end() {
  {
    const std::lock_guard guard{lock_};
    ending_ = true;
  }
  news_.notify_all();
  for (auto& thread : threads_)
    thread.join();
}

/// Whether the first ready device may compute now.
/// \pre the lock is held
bool compute_threads::fits() const {
  return !ready_.empty() && ready_.front()->team_ <= free_;
}

/// Adds a device that has work and is idle. A thread that reports an end checks the
/// queue before sleeping, so that thread needs no notification.
/// \pre the lock is held
void compute_threads::add(cpu_device& ready) {
  ready_.push_back(&ready);
  wanted_ = fits();
  if (wanted_ && ready_.size() > telling_)
    news_.notify_one();
}

/// Marks a device as idle, or adds the device again if more work is in the queue.
/// \pre the lock is held
void compute_threads::rest(cpu_device& over) {
  over.busy_ = false;
  if (over.jobs_.empty())
    rest_.notify_all();
  else
    add(over);
}

bool compute_threads::quiet() {
  const std::lock_guard guard{lock_};
  return at_work_ == 0;
}

void compute_threads::serve() {
  std::unique_lock guard{lock_};
  while (true) {
    news_.wait(guard, [this] { return ending_ || fits(); });
    if (ending_)
      return;
    auto& on = *ready_.front();
    ready_.pop_front();
    free_ -= on.team_;
    on.busy_ = true;
    ++at_work_;
    wanted_ = fits();
    auto next = on.jobs_.next();
    guard.unlock();
    if (on.launched_) {
      on.launched_->launch(std::move(next));
      guard.lock();
      free_ += on.team_;
      ++telling_; // this thread takes the next ready device itself
      rest(on);
      --telling_;
      --at_work_;
      continue;
    }
    const auto how = on.compute(next.what);
    guard.lock();
    free_ += on.team_;
    ++telling_;
    wanted_ = fits();
    guard.unlock();
    const bool was_away = tell(on, std::move(next), how);
    guard.lock();
    telling_ -= was_away ? 0 : 1;
    --at_work_;
  }
}

/// Reports the end of a work, releases the device, and runs the actors that follow.
/// Returns whether the thread was away for long, so that the other threads no longer
/// count on this thread.
bool compute_threads::tell(cpu_device& on, device_job done, const work_end& how) {
  bool at_rest = false, is_away = false;
  const auto say = [&] {
    done.ended(how);
    done = {}; // releases the values of the work before the device is idle
    at_rest = true;
    const std::lock_guard guard{lock_};
    rest(on);
  };
  try {
    if (visit)
      visit(say, {.wanted = [this] { return wanted_.load(); },
                  .away =
                    [&] {
                      const std::lock_guard guard{lock_};
                      telling_ -= is_away ? 0 : 1;
                      is_away = true;
                      if (fits())
                        news_.notify_one();
                    }});
    else
      say();
  } catch (...) {
    if (broken)
      broken();
  }
  if (at_rest)
    return is_away;
  done = {};
  const std::lock_guard guard{lock_};
  rest(on);
  return is_away;
}

cpu_device::cpu_device(occupation& seen, std::shared_ptr<compute_threads> shared,
                       int team, const stream* on, work_name name, launch_times* times)
  : seen_(seen), shared_(std::move(shared)), team_(team) {
  if (shared_ && on != nullptr && on->gpu() != nullptr)
    launched_ = std::make_unique<launched_works>(
      seen_, *on, std::move(name),
      [all = shared_.get()] {
        if (all->broken)
          all->broken();
      },
      times);
}

cpu_device::~cpu_device() {
  stop();
  if (!shared_)
    return;
  std::unique_lock guard{shared_->lock_};
  shared_->rest_.wait(guard, [this] { return !busy_; });
}

void cpu_device::enqueue(work what, on_end ended) {
  device_job next{std::move(what), std::move(ended)};
  if (shared_) {
    const std::lock_guard guard{shared_->lock_};
    if (stopped_)
      return;
    const bool is_free = !busy_ && jobs_.idle() && (!launched_ || launched_->idle());
    if (next.what.computes() || next.what.turn != no_turn || !is_free) {
      const bool at_rest = !busy_ && jobs_.empty();
      jobs_.add(std::move(next));
      if (at_rest && !jobs_.empty())
        shared_->add(*this);
      return;
    }
  }
  next.ended(compute(next.what));
}

work_end cpu_device::compute(const work& what) {
  occupied now{seen_, {what.kind, what.stage, what.microbatch, what.operations}};
  work_end result{.start = now.start()};
  try {
    what.compute();
  } catch (...) {
    result.failure = std::current_exception();
  }
  result.end = now.end();
  return result;
}

void cpu_device::stop() {
  if (!shared_)
    return;
  const std::lock_guard guard{shared_->lock_};
  stopped_ = true;
  jobs_.clear();
  std::erase(shared_->ready_, this);
  shared_->wanted_ = shared_->fits();
}

bool cpu_device::idle() const {
  if (!shared_)
    return true;
  const std::lock_guard guard{shared_->lock_};
  return jobs_.idle() && !busy_ && (!launched_ || launched_->idle());
}

} // namespace troupe
