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

/// Works of a device whose kernels run on a GPU. Each is launched behind those before
/// it, while they still run, so that the GPU finds the next one when it is through with
/// one; it begins when the GPU is through with that, and with its inputs; it ends, and
/// whoever waits for it is told, when what it launched has ended.
class launched_works {
public:
  /// \param seen what the GPU is at for this device \param on where works launch
  /// \param name of a work, for whoever reports on what it launches; may be empty
  /// \param broken called if memory runs out for the message that one has ended
  /// \param times where launches are noted; null: nowhere
  launched_works(occupation& seen, const stream& on, work_name name,
                 std::function<void()> broken, launch_times* times = nullptr)
    : seen_(seen),
      on_(on),
      name_(std::move(name)),
      broken_(std::move(broken)),
      times_(times) {
    // nop
  }

  /// Waits for all.
  ~launched_works();

  launched_works(const launched_works&) = delete;
  launched_works& operator=(const launched_works&) = delete;

  /// \pre no other thread launches
  void launch(device_job next);

  /// Whether all have ended, and were told of.
  bool idle() const;

private:
  struct under_way {
    device_job job = {};
    std::shared_ptr<launched_end> end = nullptr; // as others know it
    nanoseconds start = not_begun;
    std::exception_ptr failure = nullptr;
  };

  static constexpr nanoseconds not_begun = -1;

  bool is_idle() const { return works_.empty() && telling_ == 0; }
  void begin_first();
  void wait_for_inputs(const work& what);
  void launch_all(under_way& added);
  void tell(device_job& done, const work_end& how);
  void end_first(const std::exception_ptr& failure);

  occupation& seen_;
  const stream& on_;
  work_name name_;
  std::function<void()> broken_;
  launch_times* times_;
  mutable std::mutex lock_;
  std::condition_variable idle_;
  // under the lock
  std::deque<under_way> works_; // a reference to one lasts until it has ended
  int telling_ = 0;             // have ended, and are told of
};

} // namespace troupe
