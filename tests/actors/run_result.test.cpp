// SPDX-License-Identifier: BSD-3-Clause
// The result that is put together when a run has ended.

#include "actors/run/run_result.hpp"

#include "actors/run/recorder.hpp"
#include "actors/run/run_resources.hpp"
#include "tests/actors/tiny.hpp"

#include <catch2/catch_test_macros.hpp>

namespace troupe::run_result_test {

namespace {

/// The measurements of a run without messages, after `happens` has changed the parts.
template <class Happens>
run_result after(const run_plan& plan, const Happens& happens) {
  wall_clock wall;
  virtual_clock clock;
  run_monitor watch{plan, wall};
  const run_resources equipped{plan, clock, watch, all_ranks(plan)};
  run_log log{plan};
  message_meter meter;
  happens(log, equipped, meter);
  return measured(plan, log, equipped, meter, false);
}

run_plan trained(const std::string& exchange = "ring") {
  return tiny::training_on({.data = 2, .exchange = exchange}, one_f_one_b(), {2, 2, 1},
                           clock_kind::virtual_time);
}

} // namespace

TEST_CASE("envelopes and what they moved are counted by kind", "[result]") {
  const auto result = after(trained(), [](auto&, auto&, message_meter& meter) {
    meter.sent();
    meter.sent();
    meter.handled();
    meter.sent();
    meter.moved(traffic::tensor, 100);
    meter.moved(traffic::tensor, 20);
    meter.moved(traffic::experts, 3);
  });
  CHECK(result.envelopes == 3);
  CHECK(result.most_envelopes == 2);
  CHECK(result.bytes_moved
        == std::array<std::int64_t, traffic_kinds>{0, 0, 0, 120, 3, 0});
}

TEST_CASE("a result has the memory of every rank and use, none of a simulation",
          "[result]") {
  const auto plan = trained();
  std::int64_t before = 0;
  const auto result = after(plan, [&](auto&, const run_resources& equipped, auto&) {
    auto& memory = equipped.ranks()[2]->memory;
    before = memory.total().peak();
    memory.account(memory_use::passing).use(std::int64_t{1} << 40);
    memory.account(memory_use::passing).release(std::int64_t{1} << 40);
  });
  CHECK(result.reserved_bytes == bytes_needed(plan));
  REQUIRE(result.peak_parts.size() == 4);
  CHECK(result.peak_bytes[2] >= std::int64_t{1} << 40);
  CHECK(result.peak_bytes[2] - before <= std::int64_t{1} << 40);
  CHECK(result.peak_parts[2][static_cast<std::size_t>(memory_use::passing)]
        >= std::int64_t{1} << 40);
  CHECK(result.peak_bytes[3] < std::int64_t{1} << 40);
  CHECK(result.late_allocations == 0);
  const auto simulated =
    after(tiny::simulation(gpipe(), {2, 2}), [](auto&, auto&, auto&) {});
  CHECK(simulated.peak_bytes.empty());
  CHECK(simulated.reserved_bytes.empty());
}

TEST_CASE("a result has the losses of whole minibatches, and the samples seen by then",
          "[result]") {
  auto plan = trained();
  plan.dims.steps = 2;
  plan.work->batch = 8;
  const auto rows = static_cast<double>(plan.work->whole.rows);
  const auto result = after(plan, [&](run_log& log, auto&, auto&) {
    for (const int microbatch : {0, 1, 2, 3, 4}) // of the second batch one
      log.losses.add({microbatch, 2, {.loss = 6 * rows}});
  });
  REQUIRE(result.loss.size() == 1);
  CHECK(result.loss.front() == 3);
  CHECK(result.loss_samples == std::vector<std::int64_t>{8});
  CHECK(result.samples == 8);
}

TEST_CASE("only where replicas update one by one are their accesses told", "[result]") {
  const auto happens = [](auto&, const run_resources& equipped, auto&) {
    if (const auto& first = equipped.shared_of({0, 0, 0}))
      for (const int data : {1, 0})
        first->update(data, 1, 1, {}, nullptr, nullptr);
  };
  auto plan = tiny::simulation(one_f_one_b(), {2, 2});
  plan.mesh[axis::data] = 2;
  plan.exchange = find_exchange("server:async");
  const auto one_by_one = after(plan, happens);
  REQUIRE(one_by_one.accesses.size() == 4);
  CHECK(one_by_one.accesses.front()
        == std::vector<shared_access>{{1, true}, {0, true}});
  CHECK(one_by_one.exchange.max == std::vector<std::int64_t>{1, 0});
  plan.keep.record = false;
  CHECK(after(plan, happens).accesses.empty());
  plan.exchange = find_exchange("ring");
  CHECK(after(plan, happens).exchange.max.empty());
}

} // namespace troupe::run_result_test
