// SPDX-License-Identifier: BSD-3-Clause
// The actors that exist in a run.

#include "actors/run/actor_registry.hpp"

#include "actors/run/actor_runtime.hpp"
#include "tests/actors/tiny.hpp"

#include <catch2/catch_test_macros.hpp>

namespace troupe::roster_test {

namespace {

/// The number of actors of a plan, in virtual time; all actors end afterwards.
std::size_t actors_of(const run_plan& made) {
  const auto plan = std::make_shared<const run_plan>(made);
  message_meter meter;
  wall_clock wall;
  virtual_clock clock;
  interconnect links{clock, plan->machine.links, plan->ranks()};
  run_monitor watch{*plan, wall};
  run_resources equipped{*plan, clock, watch, all_ranks(*plan)};
  const auto board = std::make_shared<run_status>();
  auto house = std::make_unique<actor_runtime>(plan->machine.clock);
  actor_registry all{
    {plan, &meter, &clock, &links}, equipped, std::make_shared<run_log>(*plan), board};
  all.spawn(house->system());
  all.wire();
  house->settle();
  CHECK_FALSE(board->failure());
  const auto count = house->actors();
  all.send_exits();
  house->settle();
  clock.clear();
  links.clear();
  CHECK(house->actors() == 0);
  all.clear();
  if (house->actors() > 0)
    (void)house.release(); // the runtime would wait for them
  return count;
}

run_plan by(const std::string& exchange) {
  return tiny::training_on({.data = 2, .exchange = exchange}, one_f_one_b(), {3, 4, 1},
                           clock_kind::virtual_time);
}

} // namespace

// Besides a recorder and a coordinator there are schedulers, stages, optimizer shards,
// and a data source for each pipeline. Then come servers, each with a scheduler, or
// experts.
TEST_CASE("a run has the actors of its table, and all of them go when told",
          "[roster]") {
  CHECK(actors_of(by("ring")) == 2 + 6 + 6 + 6 + 2);
  CHECK(actors_of(by("server:async")) == 2 + 6 + 6 + 6 + 2 + 2 * 6);
  CHECK(actors_of(tiny::training_on({.tensor = 2}, one_f_one_b(), {3, 4, 1},
                                    clock_kind::virtual_time))
        == 2 + 6 + 6 + 6 + 2);
  CHECK(actors_of(tiny::simulation(chimera(), {4, 4})) == 2 + 4 + 8 + 4 + 2);
  CHECK(actors_of(tiny::training_on({.data = 2, .expert = 2, .experts = true},
                                    one_f_one_b(), {2, 4, 1},
                                    clock_kind::virtual_time))
        == 2 + 4 + 4 + 4 + 2 + 2 * 4); // four experts in every second block
}

} // namespace troupe::roster_test
