// SPDX-License-Identifier: BSD-3-Clause
// The CPU device of a rank, and the compute threads that all devices of a run share.
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

/// The compute threads that all devices of a run share. Each thread takes the next work
/// of the device that has waited longest. With more devices than threads, the devices
/// alternate work by work. A work starts only when its whole team may compute.
class compute_threads {
public:
  /// \param count number of threads to start
  /// \param at_once number of threads that may compute at the same time, threads of
  /// teams included
  /// \throws no_thread
  compute_threads(int count, int at_once);

  /// Ends the threads.
  /// \pre no device is left
  ~compute_threads();

  compute_threads(const compute_threads&) = delete;
  compute_threads& operator=(const compute_threads&) = delete;

  /// Functions for a `visit` of a compute thread, between two works of the thread.
  /// Valid until `visit` returns.
  struct thread_control {
    std::function<bool()>
      wanted; ///< Returns true if a device has a work that may start now.
    std::function<void()> on_leave; ///< To be called before the thread does other work
                                    ///< for long, for example reads a file.
  };

  /// Replaces the direct call of `report`, which reports the end of a work. A compute
  /// thread calls the function. The function must call `report`, and may then run
  /// actors that `report` has woken, until works.wanted() returns true. If empty, the
  /// thread only calls `report`. Not called for works on a GPU, nor for works that end
  /// inside enqueue(). Must be set before the first work.
  std::function<void(const std::function<void()>& report, const thread_control& works)>
    visit = {};

  /// Called if `visit` or a report throws, for example because memory has run out: the
  /// actor of the work may never receive the message that the work has ended. May be
  /// empty. Must be set before the first work.
  std::function<void()> broken = {};

  /// True if no compute thread computes or launches a work, reports the end of a work,
  /// or runs actors after a report.
  bool quiet();

private:
  friend class cpu_device;

  void end();
  void add(cpu_device& ready);
  void rest(cpu_device& finished);
  bool fits() const;
  void serve();
  bool report(cpu_device& target, device_job done, const work_end& outcome);

  std::mutex lock_;
  std::condition_variable news_; // for the threads
  std::condition_variable rest_; // for devices that wait to be idle
  std::deque<cpu_device*> ready_;
  std::atomic<bool> wanted_ = false; // a device is ready, and may compute
  int free_;
  std::size_t reporting_ =
    0; // threads that report an end, or run actors without a call of on_leave
  int at_work_ = 0; // threads that compute or report
  bool ending_ = false;
  std::vector<std::thread> threads_;
};

/// A device that computes on the compute threads of a run, with the help of a team.
/// Works run one at a time, in the order of enqueueing, or of turns. With compute
/// threads, enqueue() never waits for arithmetic. A work without arithmetic needs no
/// thread: such a work ends inside enqueue() unless it has a turn or earlier work is
/// left. Where kernels run on a GPU, the compute threads launch the kernels. Without
/// compute threads each work runs inside enqueue(), turns and stop() have no effect,
/// and idle() is always true.
class cpu_device : public device {
public:
  /// \param seen records the current task; must outlive the device
  /// \param shared null if works run on the thread that calls enqueue()
  /// \param team number of threads that compute a work, the compute thread included; at
  /// most the `at_once` of `shared`
  /// \param stream the stream on which works launch kernels; must outlive the device.
  /// Null, or without a GPU: a work ends when its function returns. Unused if `shared`
  /// is null
  /// \param name names a work in reports on launches; may be empty
  /// \param times records launches on a GPU; must outlive the device; null if launches
  /// are not recorded
  cpu_device(occupation& seen, std::shared_ptr<compute_threads> shared, int team,
             const stream* stream = nullptr, work_name name = {},
             launch_times* times = nullptr);

  /// Drops works that have neither started nor been launched, and waits for all other
  /// works.
  ~cpu_device() override;

  void enqueue(work item, on_end ended) override;
  void stop() override;
  bool idle() const override;
  bool computes() const override { return seen_.now().has_value(); }
  int depth() const override { return shared_ ? 2 : 1; }

private:
  friend class compute_threads;

  work_end compute(const work& item);

  occupation& seen_;
  std::shared_ptr<compute_threads> shared_;
  int team_;
  std::unique_ptr<launched_works> launched_; ///< Null unless kernels run on a GPU.
  // guarded by the lock of the compute threads
  job_line jobs_;
  bool busy_ = false; ///< A compute thread runs or launches a work of this device.
  bool stopped_ = false;
};

} // namespace troupe
