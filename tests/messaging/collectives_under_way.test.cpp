// SPDX-License-Identifier: BSD-3-Clause
// Several collectives of one member at once.

#include "messaging/collectives_under_way.hpp"

#include "messaging/collective_catalog.hpp"

#include <catch2/catch_test_macros.hpp>

#include <utility>
#include <vector>

namespace troupe::collectives_under_way_test {

namespace {

collective_part part_of(int rank, int instance, std::int64_t values = 4) {
  return even_part(doubling_all_reduce(), rank, 2, values, 0, instance);
}

/// A member with an array for each of two collectives.
struct member {
  std::vector<collective_message> begin(int rank, int instance) {
    auto* const array = arrays[instance].data();
    return all.begin(part_of(rank, instance), {array, array, &payloads});
  }

  std::vector<float> arrays[2];
  memory_account memory;
  pool payloads{"a test's payloads", 4, 4, memory};
  collectives_under_way all;
};

} // namespace

TEST_CASE("what comes for a collective that has not begun here is kept",
          "[collective]") {
  member a, b;
  a.arrays[0] = {1, 2, 3, 4};
  a.arrays[1] = {0, 0, 1, 1};
  b.arrays[0] = {10, 20, 30, 40};
  b.arrays[1] = {5, 6, 7, 8};
  CHECK(a.all.none());
  auto first = a.begin(0, 0), second = a.begin(0, 1);
  CHECK((a.all.is_under_way(0) && a.all.is_under_way(1)));
  CHECK_FALSE(a.all.none());
  for (auto* early : {&second, &first}) // the other way round
    for (auto& message : *early)
      CHECK(b.all.receive(std::move(message)).empty());
  CHECK(b.all.none()); // none has begun
  CHECK_FALSE(b.all.is_under_way(1));
  auto answers = b.begin(1, 1);
  CHECK(b.all.none()); // all messages were there
  CHECK(b.arrays[1] == std::vector<float>{5, 6, 8, 9});
  CHECK(b.arrays[0] == std::vector<float>{10, 20, 30, 40});
  for (auto& message : answers)
    a.all.receive(std::move(message));
  CHECK(a.arrays[1] == b.arrays[1]);
  CHECK(a.all.is_under_way(0));
  CHECK_FALSE(a.all.is_under_way(1));
  for (auto& message : b.begin(1, 0))
    a.all.receive(std::move(message));
  CHECK(a.all.none());
  CHECK(a.arrays[0] == std::vector<float>{11, 22, 33, 44});
  CHECK(b.arrays[0] == a.arrays[0]);
}

TEST_CASE("a collective is under way until its sum is over; others go on",
          "[collective]") {
  member a, b;
  a.arrays[0] = {1, 2, 3, 4};
  a.arrays[1] = {0, 0, 1, 1};
  b.arrays[0] = {10, 20, 30, 40};
  b.arrays[1] = {5, 6, 7, 8};
  std::vector<std::pair<int, collective_sum>> asked;
  a.all.yield_sums([&](int instance, collective_sum what) {
    asked.emplace_back(instance, std::move(what));
  });
  for (const int instance : {0, 1})
    for (auto& message : b.begin(1, instance))
      CHECK(a.all.receive(std::move(message)).empty());
  a.begin(0, 0);
  a.begin(0, 1);
  REQUIRE(asked.size() == 2);
  CHECK((asked[0].first == 0 && asked[1].first == 1));
  CHECK(asked[0].second.values == 4);
  CHECK(a.arrays[0] == std::vector<float>{1, 2, 3, 4}); // nothing is done at once
  CHECK((a.all.is_under_way(0) && a.all.sums()));
  CHECK_FALSE(a.all.waits_for());
  asked[1].second.run();
  CHECK(a.all.end_sum(1).empty());
  CHECK_FALSE(a.all.is_under_way(1));
  CHECK((a.all.is_under_way(0) && a.all.sums()));
  CHECK(a.arrays[1] == std::vector<float>{5, 6, 8, 9});
  asked[0].second.run();
  a.all.end_sum(0);
  CHECK((a.all.none() && !a.all.sums()));
  CHECK(a.arrays[0] == std::vector<float>{11, 22, 33, 44});
}

TEST_CASE("who is missing is named with the collective that waits", "[collective]") {
  collectives_under_way all;
  CHECK_FALSE(all.waits_for());
  all.begin(part_of(0, 7), {});
  REQUIRE(all.waits_for());
  CHECK(all.waits_for()->instance == 7);
  CHECK(all.waits_for()->from == 1);
  collectives_under_way other;
  for (auto& message : other.begin(part_of(1, 7), {}))
    all.receive(std::move(message));
  CHECK_FALSE(all.waits_for());
}

} // namespace troupe::collectives_under_way_test
