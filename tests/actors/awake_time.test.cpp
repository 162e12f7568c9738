// SPDX-License-Identifier: BSD-3-Clause
// A watchdog whose process was stopped between two looks.

#include "actors/run/awake_time.hpp"

#include <catch2/catch_test_macros.hpp>

namespace troupe::awake_time_test {

TEST_CASE("a watch that was stopped counts little of that time as silence", "[nodes]") {
  awake_time watch{20};
  silence other;
  const auto look = [&](nanoseconds now, nanoseconds heard) {
    return other.look(now, heard, watch.look(now));
  };
  CHECK(look(100, 100) == 0);
  CHECK(look(110, 100) == 10);
  CHECK(look(120, 118) == 2);
  CHECK(look(130, 118) == 12);
  CHECK(look(1130, 118) == 32); // stopped: arrived messages are not read yet
  CHECK(look(1140, 1139) == 1); // now read
  CHECK(look(1150, 1139) == 11);
  for (nanoseconds now = 1160; now <= 1260; now += 10)
    CHECK(look(now, 1139) == now - 1139); // no message has come
}

} // namespace troupe::awake_time_test
