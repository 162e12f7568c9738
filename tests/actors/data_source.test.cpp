// SPDX-License-Identifier: BSD-3-Clause
// The actor that reads the samples of a replica.

#include "actors/pipeline/data_source.hpp"

#include "actors/run/actor_runtime.hpp"
#include "tests/actors/brittle_data.hpp"
#include "tests/actors/stand_in.hpp"
#include "tests/actors/tiny.hpp"

#include <caf/exit_reason.hpp>
#include <catch2/catch_test_macros.hpp>

namespace troupe::data_source_test {

TEST_CASE("before it reads, a source lets others go on and says what it does",
          "[data source]") {
  std::vector<std::string> order;
  wall_clock wall;
  occupation seen{wall};
  auto made = tiny::training_of(gpipe(), {2, 2, 1}, clock_kind::real);
  made.work->data =
    std::make_shared<tiny::brittle_data>(made.work->data, 2, [&order, &seen] {
      REQUIRE(seen.now());
      CHECK(seen.now()->current.kind == reading);
      CHECK(seen.now()->current.microbatch == 1);
      order.emplace_back("read");
    });
  const auto plan = std::make_shared<const run_plan>(std::move(made));
  memory_account account;
  const auto pools = std::make_shared<data_pools>(*plan, position{}, account);
  message_meter meter;
  actor_runtime house{clock_kind::real}; // without threads: all actors run on this one
  auto& system = house.system();
  const auto first =
    tiny::stand_in<stage_actor>(system, meter, [&order](const activation& a) {
      order.push_back("activation " + std::to_string(a.header.microbatch));
    });
  const auto last =
    tiny::stand_in<stage_actor>(system, meter, [&order](const labels& l) {
      order.push_back("labels " + std::to_string(l.header.microbatch));
    });
  const auto source = system.spawn(
    data_source, run_context{plan, &meter, nullptr, nullptr}, position{}, pools,
    sample_reader{&seen, [&order] { order.emplace_back("hand over"); }});
  const auto everybody = std::make_shared<actor_handles>(plan);
  everybody->stages = {first, last};
  send_external(meter, source, mail::wiring{everybody});
  for (int i = 0; i < 3; ++i) { // one more than there are
    send_external(meter, source, mail::demand{});
    house.settle();
  }
  CHECK_FALSE(seen.now());
  CHECK(seen.ended(reading) == 2);
  std::ranges::sort(order.begin() + 1, order.begin() + 3);
  std::ranges::sort(order.begin() + 5, order.end());
  CHECK(order
        == std::vector<std::string>{"hand over", "activation 0", "labels 0",
                                    "hand over", "read", "activation 1", "labels 1"});
  for (const auto& one : {first, last})
    caf::anon_send_exit(one, caf::exit_reason::user_shutdown);
  caf::anon_send_exit(source, caf::exit_reason::user_shutdown);
  house.settle();
  CHECK(house.actors() == 0);
}

} // namespace troupe::data_source_test
