// What a scheduler grants, to whom, and what it holds back.

#include "actors/rank/scheduler_core.hpp"

#include "tests/actors/tiny.hpp"

#include <catch2/catch_test_macros.hpp>

#include <deque>

using namespace troupe;
using lines = std::vector<std::string>;

namespace {

/// A scheduler of a rank that hosts one stage.
struct scheduled {
  explicit scheduled(const run_plan& made, int rank = 0, int depth = 1)
    : plan(std::make_shared<const run_plan>(made)),
      where(plan->hosted_by(rank).front()),
      core(plan, rank, depth) {
    // nop
  }

  action of(op what, int microbatch) const {
    return {what, where.direction, where.stage, microbatch};
  }
  void arrive(op what, int microbatch) {
    core.hear(mail::arrived{of(what, microbatch), {role::stage, where}});
  }
  void done(op what, int microbatch) {
    core.hear(mail::done{{.what = of(what, microbatch)}, {role::stage, where}});
  }
  void pause(op what, int microbatch) {
    const auto who = what == op::update ? role::optimizer_shard : role::stage;
    core.hear(mail::paused{{.what = of(what, microbatch)}, {who, where}});
  }

  /// What it grants now, and to whom if not to the stage; "" if nothing.
  std::string grant() {
    const auto g = core.grant();
    if (!g)
      return "";
    CHECK(g->who.where == where);
    const char* names[] = {"", " by the optimizer", " by an expert", " by a server"};
    return to_string(g->what) + names[static_cast<int>(g->who.what)];
  }

  /// Grants all that it may, and ends the first of that, as long as there is any.
  lines run_ahead() {
    lines result;
    std::deque<scheduler_core::granted> under_way;
    do {
      while (const auto g = core.grant()) {
        result.push_back(to_string(g->what, true));
        under_way.push_back(*g);
      }
      if (under_way.empty())
        break;
      core.hear(mail::done{{.what = under_way.front().what}, under_way.front().who});
      under_way.pop_front();
    } while (true);
    return result;
  }

  /// Grants and ends, as long as something is granted.
  lines run() {
    lines result;
    for (auto g = core.grant(); g; g = core.grant()) {
      result.push_back(to_string(g->what));
      core.hear(mail::done{{.what = g->what}, g->who});
    }
    return result;
  }

  std::shared_ptr<const run_plan> plan;
  position where;
  scheduler_core core;
};

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
  CHECK(s.grant().empty()); // B0 makes what the update reads
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
  shards.tensor = 2;
  shared_out.data = spread.data = spread.expert = 2;
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
    s.core.hear(mail::arrived{{what, direction, stage, microbatch},
                              {role::stage, {0, direction, stage}}});
  };
  const auto turn = [&] {
    const auto g = s.core.grant();
    return g ? to_string(g->what) + ": " + std::to_string(g->turn) : "";
  };
  const auto done = [&](op what, int direction, int stage) {
    const mail::done d{{.what = {what, direction, stage, direction}},
                       {role::stage, {0, direction, stage}}};
    const bool in_turn = s.core.is_in_turn(d);
    if (in_turn)
      s.core.hear(d);
    return in_turn;
  };
  arrive(f, 0, 0, 0);
  arrive(f, 1, 1, 1);
  CHECK(turn() == "F0: 0");
  CHECK(turn() == "F1: 1");
  CHECK_FALSE(done(f, 1, 1)); // its stage was faster to tell
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
  s.arrive(f, 2); // who does not read the version goes on
  s.arrive(b, 2);
  CHECK(s.grant() == "F2");
  s.done(f, 2);
  s.arrive(f, 3);
  CHECK(s.grant() == "F3");
  s.done(f, 3);
  CHECK(s.grant().empty()); // a backward would sum where the update reads
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
  CHECK(s.grant().empty()); // the device is taken
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
    s.core.hear(mail::done{{.what = s.core.grant()->what}, {role::stage, s.where}});
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
  plan.data = plan.expert = 2;
  plan.exchange = find_exchange("ring");
  scheduled s{plan};
  const auto expert = [&](int microbatch) {
    s.core.hear(mail::arrived{s.of(f, microbatch), {role::expert, s.where, 0}});
  };
  s.arrive(f, 0);
  expert(7);
  expert(3);
  CHECK(s.grant() == "F7 by an expert");
  CHECK(s.grant().empty()); // the device is taken
  s.core.hear(mail::done{{.what = s.of(f, 7)}, {role::expert, s.where, 0}});
  CHECK(s.grant() == "F3 by an expert");
  s.core.hear(mail::done{{.what = s.of(f, 3)}, {role::expert, s.where, 0}});
  CHECK(s.grant() == "F0");
  s.pause(f, 0); // it asks experts
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
  s.core.hear(mail::proceed{0});
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
  CHECK(s.grant().empty()); // all its stages are at the stop
  s.core.hear(mail::stop_after{2});
  CHECK_FALSE(s.core.finished());
  CHECK(s.run() == lines{"F1", "B1", "U1"});
  CHECK(s.core.finished());
}

TEST_CASE("a rank whose evaluations are late makes updates, but nothing new",
          "[scheduler]") {
  auto plan = tiny::simulation(one_f_one_b(), {1, 1, 9});
  plan.evaluate_every = 1;
  REQUIRE(plan.snapshots_of({0, 0, 0}) == 3);
  scheduled s{plan};
  for (int m = 0; m < 9; ++m) {
    s.arrive(f, m);
    s.arrive(b, m);
  }
  CHECK(s.run() == lines{"F0", "B0", "U0", "F1", "B1", "U1", "F2", "B2", "U2"});
  CHECK_FALSE(s.core.finished());
  s.core.hear(mail::proceed{2});
  CHECK(s.run() == lines{"F3", "B3", "U3", "F4", "B4", "U4"});
}

TEST_CASE("how far a rank is ahead of evaluations does not depend on a device's depth",
          "[scheduler]") {
  auto plan = tiny::simulation(pipedream(4), {1, 1, 9});
  plan.evaluate_every = 1;
  REQUIRE(plan.snapshots_of({0, 0, 0}) == 3);
  for (const int depth : {1, 2}) {
    scheduled s{plan, 0, depth};
    for (int m = 0; m < 9; ++m)
      s.arrive(f, m);
    CHECK(s.run_ahead().size() == 6); // three backwards
    s.core.hear(mail::proceed{1});
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
                s.core.hear(mail::arrived{{what, where.direction, where.stage, m},
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

TEST_CASE("the device of a server grants what arrives, and never finishes",
          "[scheduler]") {
  const auto plan = std::make_shared<const run_plan>(two_stages());
  scheduler_core core{plan, std::nullopt, 2};
  const performer server{role::parameter_server, {0, 0, 1}};
  CHECK_FALSE(core.grant());
  CHECK_FALSE(core.finished());
  core.hear(mail::arrived{{u, 0, 1, 0}, server});
  core.hear(mail::arrived{{u, 0, 1, 1}, server});
  const auto first = core.grant();
  REQUIRE(first);
  CHECK(first->who == server);
  CHECK_FALSE(core.grant());
  core.hear(mail::done{{.what = first->what}, server});
  REQUIRE(core.grant());
  CHECK_FALSE(core.has_choice());
  CHECK(core.explain().what.empty());
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
    CHECK(e.what == what);
    CHECK(e.on == on);
  };
  CHECK(first.core.explain().who == "scheduler of rank 0");
  explained(first, "the input of F0 of stage 0", "data_source");
  explained(last, "the input of F0 of stage 1", "scheduler of rank 0");
  first.arrive(f, 0);
  CHECK(first.grant() == "F0");
  explained(first, "an action to end", "stage 0");
  first.pause(f, 0);
  explained(first, "F0 of stage 0 to go on", "stage 0");
  first.arrive(f, 0);
  CHECK(first.grant() == "F0");
  first.done(f, 0);
  explained(first, "the input of B0 of stage 0", "scheduler of rank 1");
}
