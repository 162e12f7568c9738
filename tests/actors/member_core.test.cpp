// SPDX-License-Identifier: BSD-3-Clause
// A member of a collective: counts of sent messages, and the members that this one
// waits for.

#include "actors/collectives/member_core.hpp"

#include "messaging/collective_catalog.hpp"

#include <catch2/catch_test_macros.hpp>

#include <deque>
#include <vector>

namespace troupe::member_core_test {

namespace {

/// Members of a collective over `values` values, which has run to the end.
struct ran_members {
  ran_members(const collective_order& order, int count, std::int64_t values) {
    for (int r = 0; r < count; ++r)
      all.emplace_back(even_part(order, r, count, values), collective_memory{});
    for (auto& member : all)
      for (auto& message : member.begin())
        under_way.push_back(message);
    while (!under_way.empty()) {
      const auto message = under_way.front();
      under_way.pop_front();
      for (auto& next : all[static_cast<std::size_t>(message.to)].receive(message))
        under_way.push_back(next);
    }
  }

  std::deque<member_core> all;
  std::deque<collective_message> under_way;
};

} // namespace

TEST_CASE(
  "a member of a ring sends a chunk to its neighbour in each of 2 (n - 1) rounds",
  "[collective]") {
  const ran_members ring{ring_all_reduce(), 4, 12};
  for (const auto& member : ring.all) {
    CHECK(member.done());
    CHECK(member.sent().rounds == 6);
    CHECK(member.sent().messages == 6);
    CHECK(member.sent().bytes == 6 * 12); // chunks of three values
    CHECK(member.sent().peak_bytes == 12);
    CHECK(member.explain().input.empty());
  }
}

TEST_CASE("a member that halves what it sends has its peak at the ends",
          "[collective]") {
  const ran_members halves{halving_all_reduce(), 4, 8};
  for (const auto& member : halves.all) {
    CHECK(member.sent().messages == 4); // of 4, 2, 2 and 4 values
    CHECK(member.sent().bytes == 4 * 12);
    CHECK(member.sent().peak_bytes == 4 * 4);
  }
}

TEST_CASE("the traffic of all members is a sum, and its peak that of the busiest",
          "[collective]") {
  collective_traffic sum{.rounds = 2, .messages = 3, .bytes = 40, .peak_bytes = 16};
  sum.add({.rounds = 1, .messages = 2, .bytes = 30, .peak_bytes = 20});
  CHECK(sum.rounds == 2);
  CHECK(sum.messages == 5);
  CHECK(sum.bytes == 70);
  CHECK(sum.peak_bytes == 20);
}

TEST_CASE("a member waits for its sum", "[collective]") {
  member_core root{even_part(tree_reduce(), 0, 2, 8), {}, sums_by::caller};
  root.begin();
  root.receive({0, 0, 1, 0, {0, 1}, 8, {}});
  CHECK(root.explain().input == "the end of its sum");
  CHECK(root.explain().peer.empty());
  REQUIRE(root.take_sum());
  root.end_sum();
  CHECK(root.explain().input.empty());
  CHECK(root.done());
}

TEST_CASE("a member waits for the message of a round", "[collective]") {
  member_core first{even_part(ring_all_reduce(), 0, 3, 9), {}};
  CHECK(first.name() == "member 0");
  CHECK(first.explain().input.empty()); // the member has not begun
  first.begin();
  CHECK_FALSE(first.done());
  CHECK(first.explain().actor == "member 0");
  CHECK(first.explain().input == "the message of round 0");
  CHECK(first.explain().peer == "member 2");
}

} // namespace troupe::member_core_test
