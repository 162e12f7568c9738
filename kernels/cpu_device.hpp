#pragma once

#include "kernels/device.hpp"

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

namespace troupe {

/// How many threads may compute at once. Devices ask for those of their team before
/// each work, and get them in the order in which they asked.
class compute_permits {
public:
  explicit compute_permits(int threads) : free_(threads) {
    // nop
  }

  /// Waits until so many are free. \pre no more than there are in all
  void take(int threads);
  void give_back(int threads);

private:
  std::mutex lock_;
  std::condition_variable news_;
  int free_;
  std::uint64_t asked_ = 0, served_ = 0;
};

/// What the devices of a run share.
struct cpu_sharing {
  explicit cpu_sharing(int threads, std::function<void()> when_broken = {})
    : permits(threads), broken(std::move(when_broken)) {
    // nop
  }

  compute_permits permits;

  /// Called on a device's thread in place of `tell`, which says that a work has ended:
  /// calls it, and may then go on with what follows from it until the device is
  /// `wanted`. Empty: only `tell` is called. Set before the first work.
  std::function<void(const std::function<void()>& tell,
                     const std::function<bool()>& wanted)>
    visit = {};

  /// Called on a device's thread if memory ran out for the message that a work has
  /// ended: its actor will never hear of it.
  std::function<void()> broken;
};

/// Computes on a thread of its own, with the help of its team. Whoever enqueues work
/// goes on at once. Work without arithmetic needs no thread: it ends while it is
/// enqueued, if nothing is before it.
class cpu_device : public device {
public:
  /// \param seen what it is at \param shared null: it computes nothing, and has no
  /// thread \param threads of its team \throws no_thread
  cpu_device(occupation& seen, std::shared_ptr<cpu_sharing> shared, int threads);

  /// Waits for the work under way.
  ~cpu_device() override;

  void enqueue(work what, on_end ended) override;

  void stop() override;
  bool idle() const override;

private:
  struct job {
    work what;
    on_end ended;
  };

  work_end compute(const work& what);
  void tell(const job& done, const work_end& how);
  void serve();

  occupation& seen_;
  std::shared_ptr<cpu_sharing> shared_;
  int threads_;
  mutable std::mutex lock_;
  std::condition_variable news_;
  std::deque<job> jobs_;
  std::atomic<bool> wanted_ = false; ///< There are some.
  bool busy_ = false;                ///< With one that was the first.
  bool stopped_ = false;
  bool ending_ = false;
  std::thread thread_;
};

} // namespace troupe
