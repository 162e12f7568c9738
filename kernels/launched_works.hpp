// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "kernels/job_line.hpp"
#include "kernels/launch_times.hpp"
#include "kernels/occupation.hpp"
#include "kernels/stream.hpp"

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>

namespace troupe {

/// Launches the works of a device whose kernels run on a GPU, and reports the ends.
/// References and pointers that the constructor receives must outlive this object. Each
/// work is launched while earlier works of the stream still run, so that the GPU always
/// finds the next kernel. A work starts when the GPU has finished the previous work and
/// all inputs. A work ends when all kernels of the work have ended. The callback
/// `ended` of the work's job is then called on a thread of the stream; or inside
/// launch() if the stream or memory fails.
class launched_works {
public:
  /// \param seen records the work that the GPU runs for this device
  /// \param stream the stream on which works launch kernels
  /// \param name names a work in reports on launches; may be empty
  /// \param broken called if the callback of a work throws, for example because memory
  /// has run out for the message that the work has ended; may be empty
  /// \param times records launches; null if launches are not recorded
  launched_works(occupation& seen, const stream& stream, work_name name,
                 std::function<void()> broken, launch_times* times = nullptr)
    : seen_(seen),
      stream_(stream),
      name_(std::move(name)),
      broken_(std::move(broken)),
      times_(times) {
    // nop
  }

  /// Waits for all works.
  ~launched_works();

  launched_works(const launched_works&) = delete;
  launched_works& operator=(const launched_works&) = delete;

  /// Launches a work after all earlier works; does not wait for the end of the work.
  /// Errors of the launch are reported as the failure of the work.
  /// \pre no other thread launches
  void launch(device_job next);

  /// True if all works have ended, and all callbacks have returned.
  bool idle() const;

private:
  struct under_way {
    device_job job = {};
    std::shared_ptr<gpu_completion> end = nullptr; // shared with dependent works
    nanoseconds start = not_begun;
    std::exception_ptr failure = nullptr;
  };

  static constexpr nanoseconds not_begun = -1;

  bool is_idle() const { return works_.empty() && reporting_ == 0; }
  void begin_first();
  void wait_for_inputs(const work& item);
  void launch_all(under_way& added);
  void report(device_job& done, const work_end& outcome);
  void end_first(const std::exception_ptr& failure);

  occupation& seen_;
  const stream& stream_;
  work_name name_;
  std::function<void()> broken_;
  launch_times* times_;
  mutable std::mutex lock_;
  std::condition_variable idle_;
  // guarded by the lock
  std::deque<under_way>
    works_;           // a reference to an element stays valid until the work has ended
  int reporting_ = 0; // works that have ended, and whose callbacks run now
};

} // namespace troupe
