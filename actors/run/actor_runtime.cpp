// SPDX-License-Identifier: BSD-3-Clause
#include "actors/run/actor_runtime.hpp"

#include "actors/run/actor_threads.hpp"

#include <caf/logger.hpp>
#include <caf/scheduler/test_coordinator.hpp>

#include <utility>

namespace troupe {

actor_runtime::actor_runtime(clock_kind clock, std::function<void()> broken,
                             caf::actor_system* host)
  : system_(host),
    host_actors_(std::make_shared<std::atomic<std::size_t>>(0)),
    real_(clock == clock_kind::real),
    broken_(broken ? std::move(broken) : [] {}) {
  if (real_ && host != nullptr)
    return;
  config_ = std::make_unique<caf::actor_system_config>();
  if (real_)
    config_->load<actor_threads>();
  else
    config_->set("scheduler.policy", caf::atom("testing"));
  local_system_ = std::make_unique<caf::actor_system>(*config_);
  system_ = local_system_.get();
}

void actor_runtime::count(caf::abstract_actor& actor) {
  ++*host_actors_;
  actor.attach_functor([actors = host_actors_] { --*actors; });
}

void actor_runtime::start_threads(int count) {
  if (local_system_)
    actor_threads::threads_of(*local_system_).start_threads(count, broken_);
}

void actor_runtime::visit(const std::function<void()>& report,
                          const compute_threads::thread_control& works) {
  if (!local_system_)
    return report();
  actor_threads::threads_of(*local_system_).visit(report, works);
}

std::size_t actor_runtime::settle(std::size_t most) {
  // CAF records the current actor for a log that has no reader: a tenth of an event's
  // time. Spawning an actor had enabled that on this thread.
  caf::logger::set_current_actor_system(nullptr);
  if (!local_system_)
    return 0;
  if (!real_)
    return dynamic_cast<caf::scheduler::test_coordinator&>(system_->scheduler())
      .run(most);
  actor_threads::threads_of(*local_system_).settle();
  return 0;
}

} // namespace troupe
