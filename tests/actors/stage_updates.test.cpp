// SPDX-License-Identifier: BSD-3-Clause
// The updates of a stage, as the stage sees them.

#include "actors/pipeline/stage_updates.hpp"

#include "actors/pipeline/simulated_stage.hpp"
#include "plan/sharding.hpp"
#include "tests/actors/tiny.hpp"
#include "tests/actors/written_port.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>

#include <memory>

namespace troupe::stage_updates_test {

using Catch::Matchers::Message;
using lines = std::vector<std::string>;

namespace {

constexpr position where{0, 0, 0};

/// The updates of a first stage in a simulation. Backwards are of microbatches 0, 1, 2
/// ...
struct updated_stage {
  explicit updated_stage(run_plan made) : plan(std::move(made)) {}

  /// Whether a backward is the first of an update (f), and the last (l).
  std::string backward() {
    books.begin_forward(microbatch);
    const auto at = updates.begin_backward();
    books.end_backward(microbatch);
    updates.end_backward(microbatch++);
    return std::string{at.first ? "f" : ""} + (at.last ? "l" : "");
  }

  mail::update_request begin() {
    updates.begin({op::update, 0, 0, microbatch - 1});
    return std::get<mail::update_request>(port.mail().back().body);
  }

  run_plan plan;
  tiny::written_port port;
  stage_work work = stage_work_of(std::make_shared<simulated_stage>(plan, where));
  stage_meetings meetings{plan, where, {}, nullptr};
  stage_version_ledger books{plan.sch, plan.dims, where.hosted()};
  stage_updates updates{plan, where, port, work, meetings, books};
  int microbatch = 0;
};

run_plan simulated(const std::string& name, shape dims) {
  return tiny::simulation(*find_schedule(name), dims);
}

} // namespace

TEST_CASE("an update is of a batch, or of as many backwards as its schedule says",
          "[stage_updates]") {
  updated_stage flush{simulated("1f1b", {2, 3, 2})},
    streams{simulated("pipedream", {2, 3, 2})}, both{simulated("chimera", {2, 4, 2})};
  for (int batch = 0; batch < 2; ++batch) {
    CHECK(flush.backward() == "f");
    CHECK(flush.backward().empty());
    CHECK(flush.backward() == "l");
    flush.begin();
    flush.updates.end({});
    CHECK(both.backward() == "f"); // half of the batch is the other direction's
    both.microbatch = 4 * batch + 1;
    CHECK(both.backward() == "l");
    both.microbatch = 4 * batch + 4;
    both.begin();
    both.updates.end({});
    CHECK(streams.backward() == "fl");
    streams.begin();
    streams.updates.end({});
  }
  CHECK(flush.updates.has_all_gradients());
  CHECK(both.updates.has_all_gradients());
  CHECK_FALSE(streams.updates.has_all_gradients());
}

TEST_CASE("an update covers the samples of all data replicas, or those of its own",
          "[stage_updates]") {
  updated_stage alone{tiny::replicas("ring", 3, 1, 8)},
    by_itself{tiny::replicas("server:async", 3, 1, 8)};
  for (auto* s : {&alone, &by_itself}) {
    s->plan.dims.steps = 2;
    for (int m = 0; m < 4; ++m)
      s->backward();
  }
  CHECK(alone.begin().samples == 12);
  const auto asked = by_itself.begin();
  CHECK(asked.samples == 4);
  CHECK(asked.measured.gradients == 4);
  CHECK(asked.measured.version == 1);
  alone.updates.end({});
  CHECK(alone.updates.collect().samples == 12);
}

TEST_CASE("a snapshot waits for the update under way, and is reported once",
          "[stage_updates]") {
  auto plan = simulated("1f1b", {2, 1, 4});
  plan.copies.evaluate_every = 2;
  updated_stage s{plan};
  s.backward();
  s.begin();
  s.updates.end({});
  s.backward();
  s.begin();
  s.port.news();
  s.updates.copy_if_due(); // a forward begins meanwhile
  CHECK(s.port.news().empty());
  s.updates.end({});
  CHECK(s.port.news() == lines{"computes U0"});
  CHECK_FALSE(s.updates.take_over());
  s.updates.copy_if_due();
  CHECK(s.port.news().empty());
  s.updates.end_copy();
  CHECK(s.port.news() == lines{"reports a snapshot after 2"});
  CHECK(s.updates.take_over());
  CHECK_FALSE(s.updates.take_over());
}

TEST_CASE("a data replica that no evaluation needs reports no snapshots",
          "[stage_updates]") {
  auto plan = tiny::replicas("ring", 2, 1, 8);
  plan.copies.evaluate_every = 1;
  CHECK(in_snapshot(plan, {0, 0, 0}));
  const auto work =
    stage_work_of(std::make_shared<simulated_stage>(plan, position{1, 0, 0}));
  stage_meetings meetings{plan, {1, 0, 0}, {}, nullptr};
  stage_version_ledger books{plan.sch, plan.dims, where.hosted()};
  tiny::written_port port;
  stage_updates updates{plan, {1, 0, 0}, port, work, meetings, books};
  for (int m = 0; m < 4; ++m) {
    books.begin_forward(m);
    updates.begin_backward();
    books.end_backward(m);
    updates.end_backward(m);
  }
  updates.copy_if_due();
  CHECK(port.news().empty());
}

TEST_CASE("each version is reported when it is there, if versions are kept",
          "[stage_updates]") {
  auto plan = simulated("1f1b", {2, 1, 4});
  plan.keep.versions = true;
  plan.work.simulated().buckets = 0; // there is nothing to copy
  updated_stage s{plan};
  for (int version = 1; version <= 2; ++version) {
    s.backward();
    s.begin();
    CHECK(s.port.news().size() == 1);
    s.updates.end({});
    CHECK(s.port.news() == lines{"computes U0"});
    s.port.works.front().first.run();
    s.port.works.pop_front();
    s.updates.end_copy();
    CHECK(s.port.news() == lines{"reports version " + std::to_string(version)});
  }
}

TEST_CASE("an update is over when all of it that is wanted is copied",
          "[stage_updates]") {
  auto plan = simulated("1f1b", {2, 1, 4});
  plan.keep.versions = true;
  plan.copies.evaluate_every = 1;
  plan.work.simulated().buckets = 0;
  updated_stage s{plan};
  s.backward();
  s.begin();
  s.updates.end({});
  s.port.news();
  s.updates.end_copy();
  CHECK_FALSE(s.updates.take_over());
  s.updates.end_copy();
  CHECK(s.port.news() == lines{"reports version 1", "reports a snapshot after 1"});
  CHECK(s.updates.take_over());
  CHECK_THROWS_AS(s.updates.end_copy(), std::logic_error);
}

TEST_CASE("where time is only counted copies are made at once", "[stage_updates]") {
  auto plan = simulated("1f1b", {2, 1, 4});
  plan.copies.evaluate_every = 1;
  updated_stage s{plan};
  s.port.copies_on_device = false;
  s.backward();
  s.begin();
  s.port.news();
  s.updates.end({});
  CHECK(s.port.news() == lines{"reports a snapshot after 1"});
  CHECK(s.updates.take_over());
}

TEST_CASE("nothing is handed over while an update is not made", "[stage_updates]") {
  updated_stage s{simulated("1f1b", {2, 1, 4})};
  s.backward();
  CHECK_FALSE(s.updates.under_way());
  s.begin();
  CHECK(s.updates.under_way());
  CHECK_THROWS_MATCHES(s.updates.collect(), std::logic_error,
                       Message("its update 1 was not made"));
  s.updates.end({});
  CHECK(s.updates.collect().updates == 1);
}

} // namespace troupe::stage_updates_test
