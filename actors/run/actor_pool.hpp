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

/// The threads of real time, and how they share their actors: one queue for all, but a
/// thread keeps the actor that it woke last for itself. What follows from a message on
/// the same rank then needs neither lock nor another thread, and only what another rank
/// is to do wakes one: of two actors woken, the first goes to the queue.
///
/// CAF's own pools start their threads while an actor system is made. If one cannot be
/// started, the program ends there without a word. These threads are started behind
/// that, and there is none for a printer or a clock.
class actor_pool : public caf::scheduler::abstract_coordinator {
public:
  explicit actor_pool(caf::actor_system& system);
  ~actor_pool() override;

  /// For CAF's configuration.
  static caf::actor_system::module* make(caf::actor_system& system,
                                         caf::detail::type_list<>);

  /// The pool of a system that was configured with one.
  static actor_pool& of(caf::actor_system& system);

  /// Starts `count` more threads. \param broken called on one of them if CAF runs out
  /// of memory between two messages: then the actor at hand may never end
  /// \throws no_thread if one cannot be started; those before it run
  void start_threads(int count, const std::function<void()>& broken);

  /// Runs the actors that are ready on the caller's thread, if the pool has none.
  void settle();

  /// For a thread that is not of the pool: calls `speak`, and then runs what follows
  /// from the messages that were sent there, as a thread of the pool does, until
  /// it is wanted at its work. What is left goes to the others.
  void visit(const std::function<void()>& speak, const compute_threads::between& works);

  /// Gives the actor that this thread has kept to the others: for a thread that is
  /// about to compute or to read for long.
  static void hand_over();

  void enqueue(caf::resumable* job) override;
  caf::actor_clock& clock() noexcept override { return *clock_; }

protected:
  void start() override;
  void stop() override;

private:
  class worker;

  void add(caf::resumable* job);

  static thread_local worker* here;

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
