// SPDX-License-Identifier: BSD-3-Clause
#include "schedules/order.hpp"

#include "schedules/catalog/catalog.hpp"
#include "schedules/program.hpp"
#include "tests/schedules/examples.hpp"

#include <catch2/catch_test_macros.hpp>

#include <utility>
#include <vector>

namespace troupe::order_test {

namespace {

action on_stage_0(op what, int microbatch) {
  return {what, 0, 0, microbatch};
}

/// An order, and the actions that have arrived.
struct rank_0 {
  explicit rank_0(const schedule& sch, const shape& dims)
    : todo(make_order(sch, dims, 0)) {
    // nop
  }

  std::optional<action> next() { return todo->next(arrived); }

  void arrive(op what, int microbatch) { arrived.add(on_stage_0(what, microbatch)); }

  std::unique_ptr<order> todo;
  waiting arrived;
};

} // namespace

TEST_CASE("a program is followed even when something else has arrived", "[order]") {
  rank_0 rank{gpipe(), {2, 2}};
  rank.arrive(op::forward, 1);
  CHECK_FALSE(rank.next());
  CHECK(rank.todo->awaited() == on_stage_0(op::forward, 0));
  rank.arrive(op::forward, 0);
  CHECK(rank.next() == on_stage_0(op::forward, 0));
  CHECK(rank.next() == on_stage_0(op::forward, 1));
}

TEST_CASE("a program has finished when its last action has ended", "[order]") {
  rank_0 rank{one_f_one_b(), {1, 1}};
  rank.arrive(op::forward, 0);
  rank.arrive(op::backward, 0);
  for (const op what : {op::forward, op::backward, op::update}) {
    CHECK_FALSE(rank.todo->finished());
    const auto a = rank.next();
    REQUIRE(a == on_stage_0(what, 0));
    CHECK_FALSE(rank.todo->finished());
    rank.todo->ended(*a);
  }
  CHECK(rank.todo->finished());
}

TEST_CASE("an update that had to wait goes first when it comes back", "[order]") {
  rank_0 rank{two_bw(), {1, 1, 2}};
  for (const int m : {0, 1}) {
    rank.arrive(op::forward, m);
    rank.arrive(op::backward, m);
  }
  CHECK(rank.next() == on_stage_0(op::forward, 0));
  CHECK(rank.next() == on_stage_0(op::backward, 0));
  CHECK(rank.next() == on_stage_0(op::update, 0)); // pauses: not ended
  CHECK(rank.next() == on_stage_0(op::forward, 1));
  CHECK_FALSE(rank.next()); // a backward would add to sums that the update reads
  rank.arrive(op::update, 0);
  CHECK(rank.next() == on_stage_0(op::update, 0));
  rank.todo->ended(on_stage_0(op::update, 0));
  CHECK(rank.next() == on_stage_0(op::backward, 1));
}

TEST_CASE("ampnet prefers backwards, and the lowest microbatch", "[order]") {
  rank_0 rank{ampnet(4, 2), {2, 8}};
  for (const int m : {3, 1, 2, 0})
    rank.arrive(op::forward, m);
  for (const int m : {0, 1}) {
    REQUIRE(rank.next() == on_stage_0(op::forward, m));
    rank.todo->ended(on_stage_0(op::forward, m));
  }
  rank.arrive(op::backward, 1);
  rank.arrive(op::backward, 0);
  for (const int m : {0, 1}) {
    REQUIRE(rank.next() == on_stage_0(op::backward, m));
    rank.todo->ended(on_stage_0(op::backward, m));
  }
  CHECK(rank.next() == on_stage_0(op::update, 1));
}

TEST_CASE("ampnet keeps no more microbatches in flight than it may", "[order]") {
  rank_0 rank{ampnet(2, 1), {2, 8}};
  for (int m = 0; m < 4; ++m)
    rank.arrive(op::forward, m);
  for (const int m : {0, 1}) {
    REQUIRE(rank.next() == on_stage_0(op::forward, m));
    rank.todo->ended(on_stage_0(op::forward, m));
  }
  CHECK_FALSE(rank.next());
  rank.arrive(op::backward, 0);
  REQUIRE(rank.next() == on_stage_0(op::backward, 0));
  CHECK_FALSE(rank.next()); // still running
  rank.todo->ended(on_stage_0(op::backward, 0));
  CHECK(rank.next() == on_stage_0(op::update, 0));
  rank.todo->ended(on_stage_0(op::update, 0));
  CHECK(rank.next() == on_stage_0(op::forward, 2));
}

TEST_CASE("ampnet applies what remains at the end", "[order]") {
  rank_0 rank{ampnet(1, 2), {1, 3}};
  int updates = 0;
  for (int m = 0; m < 3; ++m) {
    rank.arrive(op::forward, m);
    rank.todo->ended(*rank.next());
    rank.arrive(op::backward, m);
    rank.todo->ended(*rank.next());
    if (m > 0) {
      const auto update = rank.next();
      REQUIRE(update == on_stage_0(op::update, m));
      CHECK_FALSE(rank.todo->finished());
      rank.todo->ended(*update);
      ++updates;
    }
  }
  CHECK(updates == 2);
  CHECK(rank.todo->finished());
}

TEST_CASE("a frozen program begins no further update, and goes on up to a stop",
          "[order]") {
  rank_0 rank{pipedream(), {2, 8}};
  for (int m = 0; m < 8; ++m) {
    rank.arrive(op::forward, m);
    rank.arrive(op::backward, m);
  }
  const auto run = [&](std::vector<action> expected) {
    for (const auto& a : expected) {
      REQUIRE(rank.next() == a);
      rank.todo->ended(a);
    }
  };
  run({on_stage_0(op::forward, 0), on_stage_0(op::forward, 1),
       on_stage_0(op::backward, 0)});
  CHECK(rank.todo->freeze() == 0);
  CHECK_FALSE(rank.next()); // the first update
  CHECK_FALSE(rank.todo->finished());
  rank.todo->stop_after(2);
  run({on_stage_0(op::update, 0), on_stage_0(op::forward, 2),
       on_stage_0(op::backward, 1)});
  CHECK_FALSE(rank.todo->finished());
  run({on_stage_0(op::update, 1)});
  CHECK(rank.todo->finished());
  CHECK_FALSE(rank.next());
}

TEST_CASE("the first of a pair waits for the inputs of both", "[order]") {
  const schedule sch{.name = "pairs",
                     .order = batch_by_batch([](int rank, const shape& dims) {
                       auto p = generate(one_f_one_b(), dims, rank); // F0 F1 B0 B1 U1
                       p[1].pair = in_pair::first;
                       p[2].pair = in_pair::second;
                       return p;
                     })};
  rank_0 rank{sch, {2, 2}};
  rank.arrive(op::forward, 0);
  rank.arrive(op::forward, 1);
  REQUIRE(rank.next() == on_stage_0(op::forward, 0));
  CHECK_FALSE(rank.next());
  CHECK(rank.arrived.has(on_stage_0(op::forward, 1)));
  rank.arrive(op::backward, 0);
  for (const auto& [what, in] :
       {std::pair{op::forward, in_pair::first}, {op::backward, in_pair::second}}) {
    const auto next = rank.next();
    REQUIRE(next.has_value());
    CHECK(next->op == what);
    CHECK(next->pair == in);
  }
}

TEST_CASE("a rank of two stages stops when both have made the last update", "[order]") {
  rank_0 rank{chimera(), {2, 2, 3}};
  for (const int stage : {0, 1})
    for (const op what : {op::forward, op::backward})
      for (int m = 0; m < 6; ++m)
        rank.arrived.add({what, stage, stage, m});
  int updates = 0;
  rank.todo->stop_after(2);
  while (const auto next = rank.next()) {
    CHECK_FALSE(rank.todo->finished());
    CHECK(next->microbatch < 4);
    rank.todo->ended(*next);
    updates += next->op == op::update;
  }
  CHECK(rank.todo->finished());
  CHECK(updates == 4);
}

TEST_CASE("ampnet stops when those that have come in are through", "[order]") {
  rank_0 rank{ampnet(4, 3), {1, 8}};
  for (int m = 0; m < 8; ++m)
    rank.arrive(op::forward, m);
  const auto run = [&](op what, int m) {
    REQUIRE(rank.next() == on_stage_0(what, m));
    rank.todo->ended(on_stage_0(what, m));
  };
  run(op::forward, 0);
  run(op::forward, 1);
  CHECK(rank.todo->freeze() == 2);
  CHECK_FALSE(rank.next());
  rank.todo->stop_after(2);
  CHECK_FALSE(rank.next());
  for (const int m : {0, 1}) {
    rank.arrive(op::backward, m);
    run(op::backward, m);
  }
  CHECK_FALSE(rank.todo->finished());
  run(op::update, 1); // of fewer gradients than usual, as at the end of a run
  CHECK(rank.todo->finished());
}

TEST_CASE("ampnet that was told to end lets nothing in when a pause is over",
          "[order]") {
  rank_0 rank{ampnet(4, 2), {1, 2, 4}};
  rank.todo->pause_after(1);
  for (int m = 0; m < 4; ++m)
    rank.arrive(op::forward, m);
  const auto run = [&](op what, int m) {
    REQUIRE(rank.next() == on_stage_0(what, m));
    rank.todo->ended(on_stage_0(what, m));
  };
  run(op::forward, 0);
  run(op::forward, 1);
  for (const int m : {0, 1}) {
    rank.arrive(op::backward, m);
    run(op::backward, m);
  }
  run(op::update, 1);
  REQUIRE(rank.todo->paused());
  CHECK(rank.todo->freeze() == 2);
  rank.todo->pause_after(2); // the checkpoint's taker resumes the rank
  CHECK_FALSE(rank.next());
  rank.todo->stop_after(2);
  CHECK_FALSE(rank.next());
  CHECK(rank.todo->finished());
}

TEST_CASE("a program that crosses batches stops at an update with the next in flight",
          "[order]") {
  rank_0 rank{examples::one_batch_ahead(), {1, 2, 3}};
  for (int m = 0; m < 6; ++m) {
    rank.arrive(op::forward, m);
    rank.arrive(op::backward, m);
  }
  const auto run = [&](op what, int m) {
    REQUIRE(rank.next() == on_stage_0(what, m));
    rank.todo->ended(on_stage_0(what, m));
  };
  for (const int m : {0, 1, 2, 3})
    run(op::forward, m);
  CHECK(rank.todo->freeze() == 0);
  rank.todo->stop_after(1);
  for (const int m : {0, 1})
    run(op::backward, m);
  CHECK_FALSE(rank.todo->finished());
  run(op::update, 1);
  CHECK(rank.todo->finished());
  CHECK_FALSE(rank.next());
}

TEST_CASE("ampnet on a rank of two stages bounds what comes in at the first alone",
          "[order]") {
  rank_0 rank{examples::looped(ampnet(1, 2), 2), {2, 4}};
  const auto run = [&](op what, int stage, int m) {
    const action expected{what, 0, stage, m};
    REQUIRE(rank.next() == expected);
    rank.todo->ended(expected);
  };
  rank.arrive(op::forward, 0);
  rank.arrive(op::forward, 1);
  run(op::forward, 0, 0);
  CHECK_FALSE(rank.next());
  rank.arrived.add({op::forward, 0, 1, 0});
  run(op::forward, 1, 0);
  rank.arrived.add({op::backward, 0, 1, 0});
  run(op::backward, 1, 0);
  CHECK_FALSE(rank.next()); // still in flight at stage 0
  rank.arrive(op::backward, 0);
  run(op::backward, 0, 0);
  run(op::forward, 0, 1);
  CHECK(rank.todo->freeze() == 2);
  rank.todo->stop_after(2);
  rank.arrive(op::forward, 2);
  CHECK_FALSE(rank.next());
  rank.arrived.add({op::forward, 0, 1, 1});
  run(op::forward, 1, 1);
  for (const int stage : {1, 0}) {
    rank.arrived.add({op::backward, 0, stage, 1});
    run(op::backward, stage, 1);
    CHECK_FALSE(rank.todo->finished());
    run(op::update, stage, 1);
  }
  CHECK(rank.todo->finished());
}

} // namespace troupe::order_test
