#include "kernels/virtual_clock.hpp"

#include <catch2/catch_test_macros.hpp>

#include <string>
#include <vector>

using namespace troupe;

TEST_CASE("events happen in order of time, and of setting within an instant",
          "[virtual_clock]") {
  virtual_clock clock;
  std::string heard;
  clock.at(20, [&] { heard += 'c'; });
  clock.at(10, [&] {
    heard += 'a';
    clock.at(15, [&] { heard += 'b'; });
  });
  clock.at(20, [&] { heard += 'd'; });
  while (clock.advance())
    heard += std::to_string(clock.now()) + ' ';
  CHECK(heard == "a10 b15 cd20 ");
}

TEST_CASE("an event may set another for the same instant", "[virtual_clock]") {
  virtual_clock clock;
  int heard = 0;
  clock.at(5, [&] { clock.at(5, [&] { ++heard; }); });
  CHECK(clock.advance());
  CHECK(heard == 1);
  CHECK(clock.now() == 5);
  CHECK_FALSE(clock.advance());
}

TEST_CASE("the end of an instant comes when it is asked for", "[virtual_clock]") {
  virtual_clock clock;
  int decided = 0;
  CHECK_FALSE(clock.end_instant());
  clock.at_end_of_instant([&] { ++decided; });
  CHECK(decided == 0);
  CHECK(clock.end_instant());
  CHECK(decided == 1);
  CHECK_FALSE(clock.end_instant());
}

TEST_CASE("a virtual device computes at the start and ends when the cost has passed",
          "[virtual_clock]") {
  virtual_clock clock;
  virtual_device device{clock, [](const work& w) { return w.kind == 1 ? 30 : 10; }};
  std::vector<nanoseconds> ends;
  bool ran = false;
  device.enqueue({.kind = 1, .run = [&] { ran = true; }},
                 [&](nanoseconds start, nanoseconds end) {
                   CHECK(start == 0);
                   ends.push_back(end);
                 });
  CHECK(ran);
  device.enqueue({}, [&](nanoseconds start, nanoseconds end) {
    CHECK(start == 30); // a device does one thing at a time
    ends.push_back(end);
  });
  CHECK(ends.empty());
  while (clock.advance())
    continue;
  CHECK(ends == std::vector<nanoseconds>{30, 40});
}
