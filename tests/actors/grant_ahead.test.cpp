// SPDX-License-Identifier: BSD-3-Clause
// Passes that are granted while others are under way: the grants of a scheduler, and
// the work of a stage.

#include "plan/stage_rules.hpp"
#include "tests/actors/scheduled.hpp"
#include "tests/actors/staged.hpp"

#include <catch2/catch_test_macros.hpp>

namespace troupe::grant_ahead_test {

using tiny::scheduled;
using tiny::staged;
using lines = std::vector<std::string>;

namespace {

run_plan two_stages(int microbatches = 2, int steps = 2) {
  return tiny::simulation(one_f_one_b(), {2, microbatches, steps});
}

constexpr op f = op::forward, b = op::backward, u = op::update;

constexpr position first{0, 0, 0};

} // namespace

TEST_CASE("the last stage's backward may be granted behind its own forward",
          "[scheduler]") {
  scheduled s{two_stages(), 1, 2};
  s.arrive(f, 0);
  CHECK(s.grant() == "F0");
  CHECK(s.grant() == "B0");
  CHECK(s.grant().empty());
}

TEST_CASE(
  "an update is granted alone: when all before it has ended, and nothing behind",
  "[scheduler]") {
  scheduled s{two_stages(1, 3), 1, 2};
  for (const int m : {0, 1})
    s.arrive(f, m);
  CHECK(s.grant() == "F0");
  CHECK(s.grant() == "B0");
  s.done(f, 0);
  CHECK(s.grant().empty()); // the update reads B0's gradients
  s.done(b, 0);
  CHECK(s.grant() == "U0");
  CHECK(s.grant().empty());
}

TEST_CASE("while an update waits nothing is granted ahead of it", "[scheduler]") {
  scheduled s{two_stages(), 0, 2};
  for (const int m : {0, 1, 2, 3}) {
    s.arrive(f, m);
    s.arrive(b, m);
  }
  for (const auto* what : {"F0", "F1", "B0", "B1", "U1"}) {
    CHECK(s.grant() == what);
    if (what[0] != 'U')
      s.done(what[0] == 'F' ? f : b, what[1] - '0');
  }
  s.pause(u, 1);
  CHECK(s.grant() == "F2");
  CHECK(s.grant().empty()); // U1 may arrive, and would go before F3
  s.done(f, 2);
  s.arrive(u, 1);
  CHECK(s.grant() == "U1 by the optimizer");
  CHECK(s.grant().empty());
  s.done(u, 1);
  CHECK(s.grant() == "F3");
  CHECK(s.grant() == "B2");
}

TEST_CASE("passes that meet others are granted alone, as they may pause",
          "[scheduler]") {
  auto shards = two_stages(), shared_out = two_stages(), spread = two_stages();
  shards.mesh[axis::tensor] = 2;
  shared_out.mesh[axis::data] = spread.mesh[axis::data] = spread.mesh[axis::expert] = 2;
  shared_out.exchange = find_exchange("zero2");
  spread.exchange = find_exchange("ring");
  for (const auto& plan : {shards, shared_out, spread}) {
    scheduled s{plan, 0, 2};
    s.arrive(f, 0);
    s.arrive(f, 1);
    CHECK(s.grant() == "F0");
    CHECK(s.grant().empty());
    s.pause(f, 0);
    CHECK(s.grant().empty());
    s.arrive(f, 0);
    CHECK(s.grant() == "F0");
    CHECK(s.grant().empty());
    s.done(f, 0);
    CHECK(s.grant() == "F1");
  }
}

TEST_CASE("a local rule grants one action after another", "[scheduler]") {
  scheduled s{tiny::simulation(*find_schedule("ampnet"), {2, 4, 1}), 0, 2};
  s.arrive(f, 0);
  s.arrive(f, 1);
  CHECK(s.grant() == "F0");
  CHECK(s.grant().empty());
}

TEST_CASE("turns count passes that may be granted behind others, rank-wide",
          "[scheduler]") {
  scheduled s{tiny::simulation(chimera(), {2, 2, 2}), 0, 2};
  const auto arrive = [&](op what, int direction, int stage, int microbatch) {
    s.core.handle(mail::arrived{{what, direction, stage, microbatch},
                                {role::stage, {0, direction, stage}}});
  };
  const auto turn = [&] {
    const auto g = s.core.grant();
    return g ? to_string(g->granted_action) + ": " + std::to_string(g->turn) : "";
  };
  const auto done = [&](op what, int direction, int stage) {
    const mail::done d{{.action = {what, direction, stage, direction}},
                       {role::stage, {0, direction, stage}}};
    const bool in_turn = s.core.is_in_turn(d);
    if (in_turn)
      s.core.handle(d);
    return in_turn;
  };
  arrive(f, 0, 0, 0);
  arrive(f, 1, 1, 1);
  CHECK(turn() == "F0: 0");
  CHECK(turn() == "F1: 1");
  CHECK_FALSE(done(f, 1, 1)); // the other stage reported first
  CHECK(turn().empty());
  CHECK(done(f, 0, 0));
  CHECK(done(f, 1, 1));
  CHECK(turn() == "B1: 2");
  arrive(b, 0, 0, 0);
  CHECK(turn() == "B0: 3");
  CHECK(done(b, 1, 1));
  CHECK(turn().empty());
  CHECK(done(b, 0, 0));
  CHECK(turn() == "U1: -1");
}

TEST_CASE("how far a rank is ahead of evaluations does not depend on a device's depth",
          "[scheduler]") {
  auto plan = tiny::simulation(pipedream(4), {1, 1, 9});
  plan.copies.evaluate_every = 1;
  REQUIRE(snapshots_of(plan, {0, 0, 0}) == 3);
  for (const int depth : {1, 2}) {
    scheduled s{plan, 0, depth};
    for (int m = 0; m < 9; ++m)
      s.arrive(f, m);
    CHECK(s.run_ahead().size() == 6); // three backwards
    s.core.handle(mail::resume{1});
    CHECK(s.run_ahead().size() == 3); // and an update
  }
}

TEST_CASE("a rank's order does not depend on its device's depth", "[scheduler]") {
  for (const auto& entry : catalog()) {
    const auto plan = tiny::simulation(*find_schedule(entry.name), {4, 8, 3});
    for (int rank = 0; rank < plan.ranks(); ++rank) {
      const auto run = [&](int depth) {
        scheduled s{plan, rank, depth};
        for (const auto& where : plan.hosted_by(rank))
          for (int m = 0; m < plan.dims.total(); ++m)
            for (const op what : {f, b})
              if (what == f || where.stage < plan.dims.stages - 1)
                s.core.handle(mail::arrived{{what, where.direction, where.stage, m},
                                            {role::stage, where}});
        const auto result = s.run_ahead();
        CHECK(s.core.finished());
        return result;
      };
      INFO(entry.name << ", rank " << rank);
      CHECK(run(2) == run(1));
    }
  }
}

TEST_CASE("a pass granted behind another begins with what that one will leave",
          "[stage]") {
  staged<> s{tiny::simulation(one_f_one_b(), {2, 4, 2}), first};
  s.forward(0);
  s.forward(1);
  s.give_gradient(0);
  s.give(2);
  s.port.news();
  s.core.run(s.of(b, 0), 7);
  s.core.run(s.of(f, 2), 8);
  CHECK(s.port.news() == lines{"computes B0", "demands", "computes F2"});
  REQUIRE(s.port.works.size() == 2);
  CHECK(s.port.works[0].first.turn == 7);
  CHECK(s.port.works[1].first.turn == 8);
  CHECK(s.core.explain().input == "B0 to end on its device");
  s.port.run_work(s.core);
  CHECK(s.port.news() == lines{"done B0"});
  CHECK(s.core.explain().input == "F2 to end on its device");
  s.port.run_work(s.core);
  CHECK(s.port.news() == lines{"sends on 2", "done F2"});
}

TEST_CASE("what a pass left alive does not count what was granted behind it",
          "[stage]") {
  staged<> s{tiny::simulation(*find_schedule("pipedream"), {2, 4, 2}), first};
  s.forward(0);
  s.forward(1);
  s.give_gradient(0);
  s.run(b, 0);
  s.core.run(s.of(u, 0));
  s.give_updated();
  s.give(2);
  s.give_gradient(1);
  s.core.run(s.of(f, 2), 0);
  s.core.run(s.of(b, 1), 1); // releases version 0
  s.port.run_work(s.core);
  CHECK(s.port.measured.back().versions_alive == 2);
  s.port.run_work(s.core);
  CHECK(s.port.measured.back().versions_alive == 1);
}

TEST_CASE(
  "a snapshot is of the parameters that a pass under way reads, not of later ones",
  "[stage]") {
  auto plan = tiny::simulation(pipedream(3), {2, 1, 9});
  plan.copies.evaluate_every = 1;
  staged<> s{plan, first};
  s.forward(0);
  s.forward(1);
  s.give_gradient(0);
  s.give(2);
  s.port.news();
  s.core.run(s.of(b, 0), 0);
  s.core.run(s.of(f, 2), 1);
  s.port.run_work(s.core);
  CHECK(s.port.news()
        == lines{"computes B0", "demands", "computes F2", "computes U0", "done B0"});
  s.core.run(s.of(u, 0)); // could overwrite buffers that are being copied
  s.port.run_work(s.core);
  CHECK(s.port.news() == lines{"sends on 2", "done F2"});
  s.port.run_work(s.core);
  CHECK(s.port.news()
        == lines{"reports a snapshot after 1", "writes update_request U0 of stage 0"});
}

} // namespace troupe::grant_ahead_test
