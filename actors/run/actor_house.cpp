// SPDX-License-Identifier: BSD-3-Clause
#include "actors/run/actor_house.hpp"

#include "actors/run/actor_pool.hpp"

#include <caf/logger.hpp>
#include <caf/scheduler/test_coordinator.hpp>

#include <utility>

namespace troupe {

actor_house::actor_house(clock_kind clock, std::function<void()> broken,
                         caf::actor_system* host)
  : system_(host),
    guests_(std::make_shared<std::atomic<std::size_t>>(0)),
    real_(clock == clock_kind::real),
    broken_(broken ? std::move(broken) : [] {}) {
  if (real_ && host != nullptr)
    return;
  config_ = std::make_unique<caf::actor_system_config>();
  if (real_)
    config_->load<actor_pool>();
  else
    config_->set("scheduler.policy", caf::atom("testing"));
  own_ = std::make_unique<caf::actor_system>(*config_);
  system_ = own_.get();
}

void actor_house::count(caf::abstract_actor& actor) {
  ++*guests_;
  actor.attach_functor([all = guests_] { --*all; });
}

void actor_house::start_threads(int count) {
  if (own_)
    actor_pool::of(*own_).start_threads(count, broken_);
}

void actor_house::visit(const std::function<void()>& speak,
                        const compute_threads::between& works) {
  if (!own_)
    return speak();
  actor_pool::of(*own_).visit(speak, works);
}

std::size_t actor_house::settle(std::size_t most) {
  // CAF records the current actor for a log that has no reader: a tenth of an event's
  // time. Spawning an actor had enabled that on this thread.
  caf::logger::set_current_actor_system(nullptr);
  if (!own_)
    return 0;
  if (!real_)
    return dynamic_cast<caf::scheduler::test_coordinator&>(system_->scheduler())
      .run(most);
  actor_pool::of(*own_).settle();
  return 0;
}

} // namespace troupe
