// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/cpu_device.hpp"

#include "kernels/processor_time.hpp"
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
  if (wanted_ && ready_.size() > reporting_)
    news_.notify_one();
}

/// Marks a device as idle, or adds the device again if more work is in the queue.
/// \pre the lock is held
void compute_threads::rest(cpu_device& finished) {
  finished.busy_ = false;
  if (finished.jobs_.empty())
    rest_.notify_all();
  else
    add(finished);
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
    auto& target = *ready_.front();
    ready_.pop_front();
    free_ -= target.team_;
    target.busy_ = true;
    ++at_work_;
    wanted_ = fits();
    auto next = target.jobs_.next();
    guard.unlock();
    if (target.launched_) {
      target.launched_->launch(std::move(next));
      guard.lock();
      free_ += target.team_;
      ++reporting_; // this thread takes the next ready device itself
      rest(target);
      --reporting_;
      --at_work_;
      continue;
    }
    const auto outcome = target.compute(next.item);
    guard.lock();
    free_ += target.team_;
    ++reporting_;
    wanted_ = fits();
    guard.unlock();
    const bool was_away = report(target, std::move(next), outcome);
    guard.lock();
    reporting_ -= was_away ? 0 : 1;
    --at_work_;
  }
}

/// Reports the end of a work, releases the device, and runs the actors that follow.
/// Returns whether the thread was away for long, so that the other threads no longer
/// count on this thread.
bool compute_threads::report(cpu_device& target, device_job done,
                             const work_end& outcome) {
  bool at_rest = false, is_away = false;
  const auto report_end = [&] {
    done.ended(outcome);
    done = {}; // releases the values of the work before the device is idle
    at_rest = true;
    const std::lock_guard guard{lock_};
    rest(target);
  };
  try {
    if (visit)
      visit(report_end, {.wanted = [this] { return wanted_.load(); },
                         .on_leave =
                           [&] {
                             const std::lock_guard guard{lock_};
                             reporting_ -= is_away ? 0 : 1;
                             is_away = true;
                             if (fits())
                               news_.notify_one();
                           }});
    else
      report_end();
  } catch (...) {
    if (broken)
      broken();
  }
  if (at_rest)
    return is_away;
  done = {};
  const std::lock_guard guard{lock_};
  rest(target);
  return is_away;
}

cpu_device::cpu_device(occupation& seen, std::shared_ptr<compute_threads> shared,
                       int team, const stream* stream, work_name name,
                       launch_times* times)
  : seen_(seen), shared_(std::move(shared)), team_(team) {
  if (shared_ && stream != nullptr && stream->gpu() != nullptr)
    launched_ = std::make_unique<launched_works>(
      seen_, *stream, std::move(name),
      [threads = shared_.get()] {
        if (threads->broken)
          threads->broken();
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

void cpu_device::enqueue(work item, on_end ended) {
  device_job next{std::move(item), std::move(ended)};
  if (shared_) {
    const std::lock_guard guard{shared_->lock_};
    if (stopped_)
      return;
    const bool is_free = !busy_ && jobs_.idle() && (!launched_ || launched_->idle());
    if (next.item.computes() || next.item.turn != no_turn || !is_free) {
      const bool at_rest = !busy_ && jobs_.empty();
      jobs_.add(std::move(next));
      if (at_rest && !jobs_.empty())
        shared_->add(*this);
      return;
    }
  }
  next.ended(compute(next.item));
}

// The thread's clock is read outside the work's wall time: the reading itself takes
// processor time, and must not count as a time without a processor.
work_end cpu_device::compute(const work& item) {
  const bool is_measured = item.computes();
  const auto computed_before = is_measured ? computing_time() : 0;
  occupied now{seen_, {item.kind, item.stage, item.microbatch, item.operations}};
  work_end result{.start = now.start()};
  try {
    item.compute();
  } catch (...) {
    result.failure = std::current_exception();
  }
  result.end = now.end();
  if (is_measured)
    result.off_processor_time = std::max<nanoseconds>(
      result.end - result.start - (computing_time() - computed_before), 0);
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
