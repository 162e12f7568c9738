// What a leader learns of its nodes' clocks, told probe by probe.

#include "actors/nodes/roll_call.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

using namespace troupe;
using namespace std::chrono_literals;

namespace {

constexpr nanoseconds hour = 3'600'000'000'000;

} // namespace

TEST_CASE("a time of the leader becomes that of the node's own clock", "[clocks]") {
  const nanoseconds ahead = GENERATE(3 * hour, -3 * hour);
  roll_call nodes{{"node a (rank 0)", "node b (rank 1)"}, 10s, {}};
  const auto asked = wall_clock::steady();
  // An answer that took an hour says less than one that came at once.
  const mail::clock_probe late{asked - hour, asked + ahead + hour / 4},
    fast{asked, asked + ahead};
  const bool late_first = GENERATE(true, false);
  nodes.take(1, late_first ? late : fast);
  nodes.take(1, late_first ? fast : late);
  const auto doubt = wall_clock::steady() - asked;
  const auto start = asked + 5;
  CHECK(nodes.time_on(1, start) <= start + ahead);
  CHECK(nodes.time_on(1, start) >= start + ahead - doubt);
  CHECK(nodes.clock_doubt() <= doubt);
  CHECK(nodes.time_on(2, start) == start); // it was not asked: it has this clock
}
