// SPDX-License-Identifier: BSD-3-Clause
// The calls between members of a GPU group before an exchange. No member launches
// before all have come, all launch in one order, and a member with another exchange is
// reported.

#include "messaging/collective_catalog.hpp"
#include "messaging/collectives_under_way.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <stdexcept>
#include <vector>

namespace troupe::group_calls_test {

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;

namespace {

/// One of several members; launches nothing.
struct one_end {
  explicit one_end(int place, int of = 2) : rank(place), ranks(of) {}

  std::vector<collective_message> begin(int instance, std::int64_t values = 6) {
    return calls.begin(even_part(ring_all_reduce(), rank, ranks, values, 0, instance),
                       {});
  }

  /// Collectives that the member may launch now.
  std::vector<int> launches() {
    std::vector<int> result;
    while (const auto next = calls.next())
      result.push_back(next->instance);
    return result;
  }

  int rank, ranks;
  group_calls calls{{}};
};

using instances = std::vector<int>;

} // namespace

TEST_CASE("a collective is launched when all have come to it", "[groups]") {
  one_end a{0, 3}, b{1, 3}, c{2, 3};
  const auto told = a.begin(4);
  REQUIRE(told.size() == 2);
  CHECK(a.launches().empty());
  CHECK(a.calls.waits_for()->from == 1);
  for (auto* const other : {&b, &c}) {
    for (const auto& call : other->begin(4))
      if (call.to == 0)
        a.calls.receive(call);
    CHECK(a.launches() == (other == &c ? instances{4} : instances{}));
  }
  CHECK(a.calls.exchanges());
  CHECK_FALSE(a.calls.waits_for());
  a.calls.end(4);
  CHECK(a.calls.none());
}

TEST_CASE("a call says what goes that way, and carries none of it", "[groups]") {
  one_end a{0};
  const auto call = a.begin(4, 6).front();
  CHECK(call.is_call());
  CHECK(call.call == 0);
  CHECK(call.bytes == 24); // half in each round of a ring of two
  CHECK_FALSE(call.payload);
  CHECK(a.begin(5).front().call == 1);
}

TEST_CASE("who comes early is remembered", "[groups]") {
  one_end a{0}, b{1};
  a.calls.receive(b.begin(4).front());
  CHECK(a.calls.none());
  (void)a.begin(4);
  CHECK(a.launches() == instances{4});
}

TEST_CASE("all launch in the order in which they come", "[groups]") {
  one_end a{0}, b{1};
  (void)a.begin(4);
  (void)a.begin(5);
  const auto first = b.begin(4).front(), second = b.begin(5).front();
  a.calls.receive(second);
  CHECK(a.launches().empty());
  a.calls.receive(first);
  CHECK(a.launches() == instances{4, 5});
}

TEST_CASE("members that come to collectives in other orders are told of", "[groups]") {
  one_end a{0}, b{1};
  const auto told = [](const char* text) {
    return MessageMatches(ContainsSubstring(text));
  };
  SECTION("while the first is waited for") {
    (void)a.begin(4);
    CHECK_THROWS_MATCHES(
      a.calls.receive(b.begin(5).front()), std::logic_error,
      told("member 1 of a group of GPUs calls collective 5 as number 0, and member 0 "
           "collective 4"));
  }
  SECTION("when it comes to the second") {
    a.calls.receive(b.begin(5).front());
    CHECK_THROWS_MATCHES(
      (void)a.begin(4), std::logic_error,
      told("member 1 of a group of GPUs calls collective 5 as number 0"));
  }
  SECTION("when the other does") {
    (void)a.begin(4);
    (void)a.begin(5);
    (void)b.begin(5);
    CHECK_THROWS_MATCHES(
      a.calls.receive(b.begin(4).front()), std::logic_error,
      told("calls collective 4 as number 1, and member 0 as number 0"));
  }
  SECTION("or it comes twice") {
    (void)a.begin(4);
    const auto call = b.begin(4).front();
    a.calls.receive(call);
    CHECK_THROWS_MATCHES(a.calls.receive(call), std::logic_error,
                         told("has received that call before"));
  }
}

TEST_CASE("collectives of groups are asked for, and others are not", "[groups]") {
  gpu_group group{};
  collectives_under_way a;
  std::vector<int> asked;
  a.exchange_by(
    [&](int instance) { return instance < 10 ? &group : nullptr; },
    [&](int instance, const collective_sum&) { asked.push_back(instance); });
  const auto part = [](int rank, int instance) {
    return even_part(ring_all_reduce(), rank, 2, 6, 0, instance);
  };
  CHECK(a.begin(part(0, 12), {}).front().call == collective_message::no_call);
  CHECK(a.begin(part(0, 3), {}).front().call == 0);
  CHECK(asked.empty());
  CHECK_FALSE(a.sums());
  CHECK(a.is_under_way(3));
  one_end b{1};
  CHECK(a.receive(b.begin(3).front()).empty());
  CHECK(asked == instances{3});
  CHECK(a.sums());
  CHECK(a.end_sum(3).empty());
  CHECK_FALSE(a.is_under_way(3));
  CHECK_FALSE(a.none()); // 12 waits for its message
}

} // namespace troupe::group_calls_test
