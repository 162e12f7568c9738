// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "kernels/cpu_device.hpp"

#include <caf/actor_clock.hpp>
#include <caf/scheduler/abstract_coordinator.hpp>

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

namespace troupe {

/// The threads that run actors in real time, and the order in which actors run. All
/// threads have one queue, but a thread keeps the actor that the thread woke last. So a
/// message to a single actor needs neither a lock nor another thread. When a thread
/// wakes a second actor, the first actor goes to the queue, where a sleeping thread may
/// take the actor. After 64 kept actors in a row, a thread takes an actor from the
/// queue.
///
/// CAF's own pools start threads while an actor system is made. If a thread cannot be
/// started, the program ends there without an error message. The threads of this pool
/// start later, and no thread exists for a printer or a clock.
class actor_threads : public caf::scheduler::abstract_coordinator {
public:
  explicit actor_threads(caf::actor_system& system);
  ~actor_threads() override;

  /// Makes the pool as a module of CAF's configuration.
  static caf::actor_system::module* make(caf::actor_system& system,
                                         caf::detail::type_list<>);

  /// Returns the pool of an actor system that was configured with `actor_threads`. The
  /// pool belongs to the system.
  static actor_threads& threads_of(caf::actor_system& system);

  /// Starts `count` more threads.
  /// \param broken called on one of the new threads if CAF runs out of memory between
  /// two messages: the current actor may then never end
  /// \throws no_thread if a thread cannot be started; threads started earlier keep
  /// running
  void start_threads(int count, const std::function<void()>& broken);

  /// Runs ready actors on the caller's thread until none is ready. Does nothing if the
  /// pool has threads. One thread at a time calls settle().
  void settle();

  /// Calls `report`, then runs the actors that messages of `report` have woken, as a
  /// pool thread does. The caller is a thread outside the pool, such as a device's.
  /// Returns when the thread keeps no actor, or after 64 actors. After 4 actors also
  /// returns when `works` wants the thread back. A remaining actor goes to the queue.
  /// \throws exceptions of `report`, and of CAF between two messages
  void visit(const std::function<void()>& report,
             const compute_threads::thread_control& works);

  /// Puts the actor that this thread has kept into the queue, before the thread
  /// computes or reads for long. During a visit(), also calls `on_leave` of `works`.
  /// Does nothing on a thread that neither belongs to a pool nor is in a visit().
  static void hand_over();

  void enqueue(caf::resumable* job) override;
  caf::actor_clock& clock() noexcept override { return *clock_; }

protected:
  void start() override;
  void stop() override;

private:
  class worker;

  void add(caf::resumable* job);

  static thread_local worker* current_worker;

  std::unique_ptr<caf::actor_clock> clock_;
  std::mutex lock_;
  std::condition_variable news_;
  std::deque<caf::resumable*> queue_;
  int sleepers_ = 0;
  bool stopping_ = false;
  std::atomic<bool> has_threads_ = false;
  std::vector<std::unique_ptr<worker>> workers_;
};

} // namespace troupe
