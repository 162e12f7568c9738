// SPDX-License-Identifier: BSD-3-Clause
#include "schedules/waiting.hpp"

#include <catch2/catch_test_macros.hpp>

namespace troupe::waiting_test {

namespace {

action forward(int microbatch) {
  return {op::forward, 0, 0, microbatch};
}

} // namespace

TEST_CASE("what has arrived can be taken once", "[waiting]") {
  waiting arrived;
  arrived.add(forward(3));
  CHECK_FALSE(arrived.remove(forward(2)));
  CHECK(arrived.remove(forward(3)));
  CHECK_FALSE(arrived.remove(forward(3)));
}

TEST_CASE("the lowest microbatch of an op comes first, whatever came first",
          "[waiting]") {
  waiting arrived;
  for (const int m : {5, 2, 9, 4})
    arrived.add(forward(m));
  arrived.add({op::backward, 0, 0, 1});
  for (const int m : {2, 4, 5, 9}) {
    REQUIRE(arrived.lowest(op::forward) == forward(m));
    CHECK(arrived.remove(forward(m)));
  }
  CHECK_FALSE(arrived.lowest(op::forward));
  CHECK(arrived.lowest(op::backward)->microbatch == 1);
}

TEST_CASE("one op, direction and stage does not stand for another", "[waiting]") {
  waiting arrived;
  arrived.add({op::forward, 1, 2, 3});
  CHECK_FALSE(arrived.remove({op::forward, 0, 2, 3}));
  CHECK_FALSE(arrived.remove({op::forward, 1, 1, 3}));
  CHECK_FALSE(arrived.remove({op::backward, 1, 2, 3}));
  CHECK(arrived.remove({op::forward, 1, 2, 3}));
}

TEST_CASE("a long queue keeps its order", "[waiting]") {
  waiting arrived;
  int next = 0;
  for (int m = 0; m < 1000; ++m) {
    arrived.add(forward(m));
    if (m % 3 != 0)
      CHECK(arrived.remove(forward(next++)));
  }
  while (const auto a = arrived.lowest(op::forward)) {
    CHECK(a->microbatch == next++);
    arrived.remove(*a);
  }
  CHECK(next == 1000);
}

} // namespace troupe::waiting_test
