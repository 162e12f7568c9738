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
  const auto& what = first.job.what;
  first.start = first.end->begun(seen_.clock());
  seen_.begin({what.kind, what.stage, what.microbatch, what.operations});
}

/// Makes the stream wait for a work's inputs. A work with inputs starts when the stream
/// reaches its first kernel.
void launched_works::wait_for_inputs(const work& what) {
  if (what.inputs.empty())
    return;
  for (const auto& input : what.inputs)
    on_.wait_for(input->mark());
  on_.when_over([this](const std::exception_ptr&) {
    const std::lock_guard guard{lock_};
    begin_first();
  });
}

namespace {

/// Launches all kernels of a work together.
void launch_together(const work& what, const stream& on, std::exception_ptr& failure) {
  on.defer_launches();
  try {
    what.launch(on, failure);
    on.launch_deferred();
  } catch (...) {
    on.stop_deferring();
    throw;
  }
  on.stop_deferring();
}

} // namespace

/// Launches a work; between two timestamps of the stream if launches are recorded.
void launched_works::launch_all(under_way& added) {
  const auto& what = added.job.what;
  if (times_ == nullptr)
    return launch_together(what, on_, added.failure);
  using clock = std::chrono::steady_clock;
  const auto begin = on_.moment();
  const auto start = clock::now();
  launch_together(what, on_, added.failure);
  const std::chrono::duration<double> taken = clock::now() - start;
  times_->all.push_back({begin, on_.moment(), taken.count()});
}

void launched_works::launch(device_job next) {
  std::unique_lock guard{lock_};
  try {
    auto before = next.what.inputs;
    if (!works_.empty())
      before.push_back(works_.back().end);
    auto end = std::make_shared<launched_end>(std::move(before));
    works_.emplace_back().end = std::move(end);
  } catch (...) {
    guard.unlock();
    return tell(next, {.failure = std::current_exception()});
  }
  auto& added = works_.back();
  added.job = std::move(next);
  if (works_.size() == 1 && added.job.what.inputs.empty())
    begin_first();
  guard.unlock();
  std::exception_ptr failure;
  bool is_named = false;
  try {
    if (name_) {
      on_.name_launches(name_(added.job.what));
      is_named = true;
    }
    wait_for_inputs(added.job.what);
    launch_all(added);
    if (const auto& tell = added.job.what.launched) {
      added.end->set_mark(on_.mark());
      tell(added.end);
    }
  } catch (...) {
    failure = std::current_exception();
  }
  if (is_named)
    on_.name_launches({});
  try {
    on_.when_over([this, failure](const std::exception_ptr& later) {
      end_first(failure ? failure : later);
    });
  } catch (...) {
    const auto refusal = std::current_exception();
    try {
      on_.wait(); // for kernels that were launched, and for waiting threads
    } catch (...) {
      // the first failure is reported
    }
    end_first(failure ? failure : refusal);
  }
}

void launched_works::tell(device_job& done, const work_end& how) {
  try {
    done.ended(how);
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
  const work_end how{first.start, first.end->ended(seen_.clock()),
                     failure ? failure : first.failure};
  auto done = std::move(first.job);
  works_.pop_front();
  ++telling_;
  if (!works_.empty() && works_.front().job.what.inputs.empty())
    begin_first();
  guard.unlock();
  tell(done, how);
  guard.lock();
  --telling_;
  if (is_idle())
    idle_.notify_all();
}

} // namespace troupe
