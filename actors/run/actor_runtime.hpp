// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/plan/run_plan.hpp"
#include "kernels/cpu_device.hpp"

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

/// The CAF actor system of a run. In real time the system has threads of the run's own,
/// or a host's; in virtual time it is CAF's testing coordinator. All actors must end
/// before this object does.
class actor_runtime {
public:
  /// \param broken called on a thread of the system if memory ran out inside CAF, so
  /// that an actor may never end; may be empty
  /// \param host in real time, an existing system whose threads run the actors; the
  /// host outlives this object. Null: the run makes a system
  explicit actor_runtime(clock_kind clock, std::function<void()> broken = {},
                         caf::actor_system* host = nullptr);

  caf::actor_system& system() { return *system_; }

  /// Counts an actor that was spawned here. Needed in a host's system only; elsewhere
  /// CAF's registry counts.
  template <class Handle>
  void count(const Handle& actor) {
    if (!local_system_)
      count(*caf::actor_cast<caf::abstract_actor*>(actor));
  }

  /// Ends the run's own system and threads. \pre actors() == 0
  void close() { local_system_.reset(); }

  /// Starts `count` threads, or `count` more, in real time without a host.
  /// \throws no_thread
  void start_threads(int count);

  /// Calls `actor_threads::visit`, in real time. In a host's system calls `report`
  /// alone.
  void visit(const std::function<void()>& report,
             const compute_threads::thread_control& works);

  /// Runs handlers on this thread until no message is left. In virtual time at most
  /// `most` handlers run, and their number is returned. Real time: returns 0, and runs
  /// no handlers after start_threads() or in a host's system.
  std::size_t settle(std::size_t most = std::numeric_limits<std::size_t>::max());

  /// Number of actors that have not ended.
  std::size_t actors() const {
    return local_system_ ? local_system_->registry().running() : host_actors_->load();
  }

private:
  void count(caf::abstract_actor& actor);

  std::unique_ptr<caf::actor_system_config> config_;
  std::unique_ptr<caf::actor_system> local_system_; ///< Null in a host's system.
  caf::actor_system* system_;
  /// Actors that have not ended in a host's system.
  std::shared_ptr<std::atomic<std::size_t>> host_actors_;
  bool real_;
  std::function<void()> broken_;
};

} // namespace troupe
