// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/launched_works.hpp"

#include <chrono>
#include <utility>

namespace troupe {

launched_works::~launched_works() {
  std::unique_lock guard{lock_};
  idle_.wait(guard, [this] { return is_idle(); });
}

bool launched_works::idle() const {
  const std::lock_guard guard{lock_};
  return is_idle();
}

/// Records that the GPU runs the first work.
/// \pre the lock is held
void launched_works::begin_first() {
  auto& first = works_.front();
  const auto& item = first.job.item;
  first.start = first.end->record_start(seen_.clock());
  seen_.begin({item.kind, item.stage, item.microbatch, item.operations});
}

/// Makes the stream wait for a work's inputs. A work with inputs starts when the stream
/// reaches its first kernel.
void launched_works::wait_for_inputs(const work& item) {
  if (item.inputs.empty())
    return;
  for (const auto& input : item.inputs)
    stream_.wait_for(input->event());
  stream_.on_complete([this](const std::exception_ptr&) {
    const std::lock_guard guard{lock_};
    begin_first();
  });
}

namespace {

/// Launches all kernels of a work together.
void launch_together(const work& item, const stream& stream,
                     std::exception_ptr& failure) {
  stream.capture_launches();
  try {
    item.launch(stream, failure);
    stream.launch_captured();
  } catch (...) {
    stream.stop_capture();
    throw;
  }
  stream.stop_capture();
}

} // namespace

/// Launches a work; between two timestamps of the stream if launches are recorded.
void launched_works::launch_all(under_way& added) {
  const auto& item = added.job.item;
  if (times_ == nullptr)
    return launch_together(item, stream_, added.failure);
  using clock = std::chrono::steady_clock;
  const auto begin = stream_.gpu_timestamp();
  const auto start = clock::now();
  launch_together(item, stream_, added.failure);
  const std::chrono::duration<double> elapsed = clock::now() - start;
  times_->launches.push_back({begin, stream_.gpu_timestamp(), elapsed.count()});
}

void launched_works::launch(device_job next) {
  std::unique_lock guard{lock_};
  try {
    auto predecessors = next.item.inputs;
    if (!works_.empty())
      predecessors.push_back(works_.back().end);
    auto end = std::make_shared<gpu_completion>(std::move(predecessors));
    works_.emplace_back().end = std::move(end);
  } catch (...) {
    guard.unlock();
    return report(next, {.failure = std::current_exception()});
  }
  auto& added = works_.back();
  added.job = std::move(next);
  if (works_.size() == 1 && added.job.item.inputs.empty())
    begin_first();
  guard.unlock();
  std::exception_ptr failure;
  bool is_named = false;
  try {
    if (name_) {
      stream_.name_launches(name_(added.job.item));
      is_named = true;
    }
    wait_for_inputs(added.job.item);
    launch_all(added);
    if (const auto& callback = added.job.item.launched) {
      added.end->set_mark(stream_.event());
      callback(added.end);
    }
  } catch (...) {
    failure = std::current_exception();
  }
  if (is_named)
    stream_.name_launches({});
  try {
    stream_.on_complete([this, failure](const std::exception_ptr& later) {
      end_first(failure ? failure : later);
    });
  } catch (...) {
    const auto callback_failure = std::current_exception();
    try {
      stream_.wait(); // for kernels that were launched, and for waiting threads
    } catch (...) {
      // the first failure is reported
    }
    end_first(failure ? failure : callback_failure);
  }
}

void launched_works::report(device_job& done, const work_end& outcome) {
  try {
    done.ended(outcome);
  } catch (...) {
    if (broken_)
      broken_();
  }
  done = {}; // releases the values of the work before the device is idle
}

void launched_works::end_first(const std::exception_ptr& failure) {
  std::unique_lock guard{lock_};
  auto& first = works_.front();
  if (first.start == not_begun) // the stream could not wait for an input
    begin_first();
  seen_.end();
  const work_end outcome{first.start, first.end->record_end(seen_.clock()),
                         failure ? failure : first.failure};
  auto done = std::move(first.job);
  works_.pop_front();
  ++reporting_;
  if (!works_.empty() && works_.front().job.item.inputs.empty())
    begin_first();
  guard.unlock();
  report(done, outcome);
  guard.lock();
  --reporting_;
  if (is_idle())
    idle_.notify_all();
}

} // namespace troupe
