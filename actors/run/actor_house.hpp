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

/// Where the actors of a run live: CAF's system on threads of our own in real time, on
/// CAF's testing coordinator in virtual time. It must not end before its actors have.
class actor_house {
public:
  /// \param broken called on one of its threads if memory ran out inside CAF, so that
  /// an actor may never end; may be empty
  /// \param host in real time, a system that is there already, whose threads run the
  /// actors; it outlives the house. Null: one of its own
  explicit actor_house(clock_kind clock, std::function<void()> broken = {},
                       caf::actor_system* host = nullptr);

  caf::actor_system& system() { return *system_; }

  /// Counts an actor that was spawned here. Needed as a guest only.
  template <class Handle>
  void count(const Handle& actor) {
    if (!own_)
      count(*caf::actor_cast<caf::abstract_actor*>(actor));
  }

  /// Ends its own threads. \pre actors() == 0
  void close() { own_.reset(); }

  /// In real time: starts threads, or some more. \throws no_thread
  void start_threads(int count);

  /// In real time: as actor_pool::visit.
  void visit(const std::function<void()>& speak, const compute_threads::between& works);

  /// Where no threads have been started, as in virtual time: lets all messages under
  /// way be heard, or `most` handlers run. Returns how many ran, in virtual time.
  std::size_t settle(std::size_t most = std::numeric_limits<std::size_t>::max());

  /// How many actors have not ended.
  std::size_t actors() const {
    return own_ ? own_->registry().running() : guests_->load();
  }

private:
  void count(caf::abstract_actor& actor);

  std::unique_ptr<caf::actor_system_config> config_;
  std::unique_ptr<caf::actor_system> own_; ///< Null where it is a guest.
  caf::actor_system* system_;
  std::shared_ptr<std::atomic<std::size_t>> guests_; ///< Have not ended.
  bool real_;
  std::function<void()> broken_;
};

} // namespace troupe
