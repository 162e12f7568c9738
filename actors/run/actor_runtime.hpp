// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "kernels/cpu_device.hpp"
#include "plan/run_plan.hpp"

#include <caf/abstract_actor.hpp>
#include <caf/actor_cast.hpp>
#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>

#include <atomic>
#include <cstddef>
#include <functional>
#include <limits>
#include <memory>

namespace troupe {

/// The CAF actor system of a run. In real time, threads of the run or of a host's
/// system run the actors. In virtual time, CAF's testing coordinator runs the actors.
/// All actors must end before this object does.
class actor_runtime {
public:
  /// \param broken called in real time on a thread of the run's own system, if memory
  /// ran out inside CAF. An actor may then never end. May be empty
  /// \param host in real time, an existing system whose threads run the actors; the
  /// host outlives this object. Null if the run makes a system; ignored in virtual time
  explicit actor_runtime(clock_kind clock, std::function<void()> broken = {},
                         caf::actor_system* host = nullptr);

  caf::actor_system& system() { return *system_; }

  /// Counts an actor that was spawned in system(), for actors(). Has an effect only in
  /// a host's system; otherwise CAF's registry counts.
  template <class Handle>
  void count(const Handle& actor) {
    if (!local_system_)
      count(*caf::actor_cast<caf::abstract_actor*>(actor));
  }

  /// Ends the run's own system and threads, and system() must not be called any more.
  /// Does nothing to a host's system.
  /// \pre actors() == 0
  void close() { local_system_.reset(); }

  /// Starts `count` threads in addition to earlier ones; does nothing in a host's
  /// system.
  /// \pre real time
  /// \throws no_thread
  void start_threads(int count);

  /// Calls `report`, then runs the actors that messages of `report` have woken, on this
  /// thread (actor_threads::visit). In a host's system, and after close(), only calls
  /// `report`.
  /// \pre real time
  void visit(const std::function<void()>& report,
             const compute_threads::thread_control& works);

  /// Runs handlers on this thread. In virtual time runs handlers until no message is
  /// left, but at most `most` handlers, and returns the number of handlers. In real
  /// time ignores `most`, runs handlers until no message is left, and returns 0. Runs
  /// none after close(), and in real time none after start_threads() or in a host's
  /// system.
  std::size_t settle(std::size_t most = std::numeric_limits<std::size_t>::max());

  /// Number of actors that have not ended; in a host's system, of counted actors.
  std::size_t actors() const {
    return local_system_ ? local_system_->registry().running() : host_actors_->load();
  }

private:
  void count(caf::abstract_actor& actor);

  std::unique_ptr<caf::actor_system_config> config_;
  std::unique_ptr<caf::actor_system> local_system_; ///< Null in a host's system.
  caf::actor_system* system_;
  /// Number of counted actors that have not ended; 0 without a host. Shared with the
  /// actors, which count down when they end.
  std::shared_ptr<std::atomic<std::size_t>> host_actors_;
  bool real_;
  std::function<void()> broken_;
};

} // namespace troupe
