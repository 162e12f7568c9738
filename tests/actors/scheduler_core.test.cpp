// SPDX-License-Identifier: BSD-3-Clause
// The grants of a scheduler: actions, receivers, and actions that are held back.

#include "plan/stage_rules.hpp"
#include "tests/actors/scheduled.hpp"

#include <catch2/catch_test_macros.hpp>

namespace troupe::scheduler_core_test {

using tiny::scheduled;
using lines = std::vector<std::string>;

namespace {

run_plan two_stages(int microbatches = 2, int steps = 2) {
  return tiny::simulation(one_f_one_b(), {2, microbatches, steps});
}

constexpr op f = op::forward, b = op::backward, u = op::update;

} // namespace

TEST_CASE("a rank runs its program, in whatever order its inputs arrive",
          "[scheduler]") {
  scheduled s{two_stages(3, 1)};
  for (const int m : {2, 1, 0})
    s.arrive(b, m);
  CHECK(s.grant().empty());
  for (const int m : {2, 0, 1})
    s.arrive(f, m);
  CHECK_FALSE(s.core.finished());
  CHECK(s.run() == lines{"F0", "F1", "B0", "F2", "B1", "B2", "U2"});
  CHECK(s.core.finished());
}

TEST_CASE("a device takes no more than its depth at once", "[scheduler]") {
  scheduled one{two_stages()}, two{two_stages(), 0, 2};
  for (auto* s : {&one, &two})
    for (const int m : {0, 1})
      s->arrive(f, m);
  CHECK(one.grant() == "F0");
  CHECK(one.grant().empty());
  one.done(f, 0);
  CHECK(one.grant() == "F1");
  CHECK(two.grant() == "F0");
  CHECK(two.grant() == "F1");
  two.arrive(b, 0);
  CHECK(two.grant().empty());
}

TEST_CASE("an update goes to the stage, and when it has waited to the optimizer shard",
          "[scheduler]") {
  scheduled s{two_stages()};
  for (const int m : {0, 1}) {
    s.arrive(f, m);
    s.arrive(b, m);
  }
  for (const auto* what : {"F0", "F1", "B0", "B1"}) {
    CHECK(s.grant() == what);
    s.done(what[0] == 'F' ? f : b, what[1] - '0');
  }
  CHECK(s.grant() == "U1");
  CHECK_FALSE(s.core.has_choice());
  s.pause(u, 1);
  CHECK(s.core.has_choice());
  CHECK(s.grant().empty());
  s.arrive(f, 2); // a stage that does not read the version continues
  s.arrive(b, 2);
  CHECK(s.grant() == "F2");
  s.done(f, 2);
  s.arrive(f, 3);
  CHECK(s.grant() == "F3");
  s.done(f, 3);
  CHECK(s.grant().empty()); // a backward would add to sums that the update reads
  s.arrive(u, 1);
  CHECK(s.grant() == "U1 by the optimizer");
  s.done(u, 1);
  CHECK_FALSE(s.core.has_choice());
  CHECK(s.grant() == "B2");
}

TEST_CASE("while an action waits only updates go first", "[scheduler]") {
  scheduled s{two_stages(1, 3)};
  s.arrive(f, 0);
  s.arrive(b, 0);
  CHECK(s.run() == lines{"F0", "B0", "U0"});
  s.arrive(f, 1);
  s.arrive(b, 1);
  CHECK(s.grant() == "F1");
  s.done(f, 1);
  CHECK(s.grant() == "B1");
  s.done(b, 1);
  CHECK(s.grant() == "U1");
  s.pause(u, 1);
  s.arrive(f, 2);
  CHECK(s.grant() == "F2");
  s.pause(f, 2);
  s.arrive(b, 2);
  CHECK(s.grant().empty());
  s.arrive(u, 1);
  CHECK(s.grant() == "U1 by the optimizer");
  s.arrive(f, 2);
  CHECK(s.grant().empty()); // the device is busy
  s.done(u, 1);
  CHECK(s.grant() == "F2");
  s.done(f, 2);
  CHECK(s.grant() == "B2");
}

TEST_CASE("nothing else of a stage begins while an action waits", "[scheduler]") {
  scheduled s{two_stages()};
  s.arrive(f, 0);
  s.arrive(f, 1);
  CHECK(s.grant() == "F0");
  s.pause(f, 0);
  CHECK(s.grant().empty());
  s.arrive(f, 0);
  CHECK(s.grant() == "F0");
  s.done(f, 0);
  CHECK(s.grant() == "F1");
}

TEST_CASE("an action that can go on goes before an update that can", "[scheduler]") {
  scheduled s{two_stages(1, 3)};
  s.arrive(f, 0);
  s.arrive(b, 0);
  for (int i = 0; i < 2; ++i)
    s.core.handle(
      mail::done{{.action = s.core.grant()->granted_action}, {role::stage, s.where}});
  CHECK(s.grant() == "U0");
  s.pause(u, 0);
  s.arrive(f, 1);
  CHECK(s.grant() == "F1");
  s.pause(f, 1);
  s.arrive(u, 0);
  s.arrive(f, 1);
  CHECK(s.grant() == "F1");
}

TEST_CASE("experts go before everything else, in the order in which they arrive",
          "[scheduler]") {
  auto plan = two_stages();
  plan.mesh[axis::data] = plan.mesh[axis::expert] = 2;
  plan.exchange = find_exchange("ring");
  scheduled s{plan};
  const auto expert = [&](int microbatch) {
    s.core.handle(mail::arrived{s.of(f, microbatch), {role::expert, s.where, 0}});
  };
  s.arrive(f, 0);
  expert(7);
  expert(3);
  CHECK(s.grant() == "F7 by an expert");
  CHECK(s.grant().empty()); // the device is busy
  s.core.handle(mail::done{{.action = s.of(f, 7)}, {role::expert, s.where, 0}});
  CHECK(s.grant() == "F3 by an expert");
  s.core.handle(mail::done{{.action = s.of(f, 3)}, {role::expert, s.where, 0}});
  CHECK(s.grant() == "F0");
  s.pause(f, 0); // the stage asks experts
  expert(0);
  CHECK(s.grant() == "F0 by an expert");
}

TEST_CASE("a scheduler that is held grants nothing until it proceeds", "[scheduler]") {
  scheduled s{two_stages()};
  s.arrive(f, 0);
  s.arrive(f, 1);
  CHECK(s.grant() == "F0");
  CHECK_FALSE(s.core.at_rest());
  s.core.hold();
  CHECK_FALSE(s.core.at_rest()); // F0 still runs
  s.done(f, 0);
  CHECK(s.core.at_rest());
  CHECK(s.grant().empty());
  s.core.handle(mail::resume{0});
  CHECK_FALSE(s.core.at_rest());
  CHECK(s.grant() == "F1");
}

TEST_CASE("a run that is stopped ends after an update that all can reach",
          "[scheduler]") {
  scheduled s{two_stages(1, 4)};
  for (const int m : {0, 1, 2}) {
    s.arrive(f, m);
    s.arrive(b, m);
  }
  CHECK(s.grant() == "F0");
  s.done(f, 0);
  CHECK(s.grant() == "B0");
  s.done(b, 0);
  CHECK(s.grant() == "U0");
  s.done(u, 0);
  const auto begun = s.core.freeze();
  CHECK(begun.rank == 0);
  CHECK(begun.count == 1);
  CHECK(s.grant().empty()); // all stages of the rank wait at the stop
  s.core.handle(mail::stop_after{2});
  CHECK_FALSE(s.core.finished());
  CHECK(s.run() == lines{"F1", "B1", "U1"});
  CHECK(s.core.finished());
}

TEST_CASE("a rank whose evaluations are late makes updates, but nothing new",
          "[scheduler]") {
  auto plan = tiny::simulation(one_f_one_b(), {1, 1, 9});
  plan.copies.evaluate_every = 1;
  REQUIRE(snapshots_of(plan, {0, 0, 0}) == 3);
  scheduled s{plan};
  for (int m = 0; m < 9; ++m) {
    s.arrive(f, m);
    s.arrive(b, m);
  }
  CHECK(s.run() == lines{"F0", "B0", "U0", "F1", "B1", "U1", "F2", "B2", "U2"});
  CHECK_FALSE(s.core.finished());
  s.core.handle(mail::resume{2});
  CHECK(s.run() == lines{"F3", "B3", "U3", "F4", "B4", "U4"});
}

TEST_CASE("the device of a server grants what arrives, and never finishes",
          "[scheduler]") {
  const auto plan = std::make_shared<const run_plan>(two_stages());
  scheduler_core core{plan, std::nullopt, 2};
  const performer server{role::parameter_server, {0, 0, 1}};
  CHECK_FALSE(core.grant());
  CHECK_FALSE(core.finished());
  core.handle(mail::arrived{{u, 0, 1, 0}, server});
  core.handle(mail::arrived{{u, 0, 1, 1}, server});
  const auto first = core.grant();
  REQUIRE(first);
  CHECK(first->receiver == server);
  CHECK_FALSE(core.grant());
  core.handle(mail::done{{.action = first->granted_action}, server});
  REQUIRE(core.grant());
  CHECK_FALSE(core.has_choice());
  CHECK(core.explain().input.empty());
}

TEST_CASE("by a local rule nothing begins while an update waits", "[scheduler]") {
  const auto sch = *find_schedule("ampnet");
  scheduled s{tiny::simulation(sch, {1, 2, 1})};
  CHECK(s.core.has_choice());
  s.arrive(f, 0);
  CHECK(s.grant() == "F0");
  s.done(f, 0);
  s.arrive(f, 1);
  s.arrive(b, 0);
  CHECK(s.grant() == "B0"); // the backward first
  s.done(b, 0);
  std::string next = s.grant();
  for (int m = 1; next[0] != 'U'; next = s.grant()) {
    const auto what = next[0] == 'F' ? f : b;
    s.done(what, m);
    if (what == f)
      s.arrive(b, m);
  }
  s.pause(u, next[1] - '0');
  s.arrive(f, 2);
  CHECK(s.grant().empty());
  s.arrive(u, next[1] - '0');
  CHECK(s.grant() == next + " by the optimizer");
}

TEST_CASE("a scheduler says what it waits for", "[scheduler]") {
  scheduled first{two_stages(1, 2)}, last{two_stages(1, 2), 1};
  const auto explained = [](scheduled& s, const std::string& what,
                            const std::string& on) {
    const auto e = s.core.explain();
    CHECK(e.input == what);
    CHECK(e.peer == on);
  };
  CHECK(first.core.explain().actor == "scheduler of rank 0");
  explained(first, "the input of F0 of stage 0", "data_source");
  explained(last, "the input of F0 of stage 1", "scheduler of rank 0");
  first.arrive(f, 0);
  CHECK(first.grant() == "F0");
  explained(first, "an action to end", "stage 0");
  first.pause(f, 0);
  explained(first, "F0 of stage 0 to resume", "stage 0");
  first.arrive(f, 0);
  CHECK(first.grant() == "F0");
  first.done(f, 0);
  explained(first, "the input of B0 of stage 0", "scheduler of rank 1");
}

} // namespace troupe::scheduler_core_test
