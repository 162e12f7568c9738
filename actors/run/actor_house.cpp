#include "actors/run/actor_house.hpp"

#include "actors/run/actor_pool.hpp"

#include <caf/logger.hpp>
#include <caf/scheduler/test_coordinator.hpp>

#include <utility>

namespace troupe {

actor_house::actor_house(clock_kind clock, std::function<void()> broken)
  : config_(std::make_unique<caf::actor_system_config>()),
    real_(clock == clock_kind::real),
    broken_(broken ? std::move(broken) : [] {}) {
  if (real_)
    config_->load<actor_pool>();
  else
    config_->set("scheduler.policy", caf::atom("testing"));
  system_ = std::make_unique<caf::actor_system>(*config_);
}

void actor_house::start_threads(int count) {
  actor_pool::of(*system_).start_threads(count, broken_);
}

void actor_house::visit(const std::function<void()>& speak,
                        const compute_threads::between& works) {
  actor_pool::of(*system_).visit(speak, works);
}

std::size_t actor_house::settle(std::size_t most) {
  // CAF notes the actor at work for its log, which nobody reads: a tenth of an event.
  // Spawning made it ready for that on this thread.
  caf::logger::set_current_actor_system(nullptr);
  if (!real_)
    return dynamic_cast<caf::scheduler::test_coordinator&>(system_->scheduler())
      .run(most);
  actor_pool::of(*system_).settle();
  return 0;
}

} // namespace troupe
