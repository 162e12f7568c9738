// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "kernels/job_line.hpp"
#include "kernels/launched_works.hpp"

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace troupe {

class cpu_device;

/// The threads that compute for the devices of a run. Each takes the next work of the
/// device that has waited longest, so that more devices than threads take turns by
/// works and no thread waits for another to hand it on.
class compute_threads {
public:
  /// \param count to start \param at_once threads that may compute at once, those of
  /// teams among them \throws no_thread
  compute_threads(int count, int at_once);

  /// \pre no device is left
  ~compute_threads();

  compute_threads(const compute_threads&) = delete;
  compute_threads& operator=(const compute_threads&) = delete;

  /// What a thread can be asked, and told, between two works.
  struct between {
    std::function<bool()> wanted; ///< Whether it should come back to work.
    std::function<void()> away;   ///< It will not come back for long: a file is read.
  };

  /// Called on such a thread in place of `tell`, which says that a work has ended:
  /// calls it, and may then go on with what follows from it until the thread is
  /// wanted. Empty: only `tell` is called. Set before the first work.
  std::function<void(const std::function<void()>& tell, const between& works)> visit =
    {};

  /// Called if memory ran out for the message that a work has ended: its actor will
  /// never hear of it. Set before the first work.
  std::function<void()> broken = {};

  /// Whether no thread computes, or goes on from the end of a work.
  bool quiet();

private:
  friend class cpu_device;

  void end();
  void add(cpu_device& ready);
  void rest(cpu_device& over);
  bool fits() const;
  void serve();
  bool tell(cpu_device& on, device_job done, const work_end& how);

  std::mutex lock_;
  std::condition_variable news_; // for the threads
  std::condition_variable rest_; // for devices that wait to be idle
  std::deque<cpu_device*> ready_;
  std::atomic<bool> wanted_ = false; // somebody is ready, and may compute
  int free_;
  std::size_t telling_ =
    0;              // threads that tell of an end, or go on from there for short
  int at_work_ = 0; // threads that compute or tell
  bool ending_ = false;
  std::vector<std::thread> threads_;
};

/// Computes on threads that it shares with the other devices of a run, with the help of
/// its team; one work at a time, in the order in which they were enqueued. Whoever
/// enqueues work goes on at once. Work without arithmetic needs no thread: it ends
/// while it is enqueued, if nothing is before it. Where kernels run on a GPU, these
/// threads launch them.
class cpu_device : public device {
public:
  /// \param seen what it is at \param shared null: it computes nothing
  /// \param team how many threads it computes with, itself among them
  /// \param on what its works launch kernels on; null: they end as they return
  /// \param name of such a work; may be empty
  /// \param times where launches on a GPU are noted; null: nowhere
  cpu_device(occupation& seen, std::shared_ptr<compute_threads> shared, int team,
             const stream* on = nullptr, work_name name = {},
             launch_times* times = nullptr);

  /// Waits for the work under way.
  ~cpu_device() override;

  void enqueue(work what, on_end ended) override;
  void stop() override;
  bool idle() const override;
  bool computes() const override { return seen_.now().has_value(); }
  int depth() const override { return shared_ ? 2 : 1; }

private:
  friend class compute_threads;

  work_end compute(const work& what);

  occupation& seen_;
  std::shared_ptr<compute_threads> shared_;
  int team_;
  std::unique_ptr<launched_works> launched_; ///< Null: works end as they return.
  // under the lock of all
  job_line jobs_;
  bool busy_ = false; ///< With one that was the first.
  bool stopped_ = false;
};

} // namespace troupe
