// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/virtual_clock.hpp"

#include <catch2/catch_test_macros.hpp>

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace troupe::virtual_clock_test {

TEST_CASE("events happen in order of time, and of setting within an instant",
          "[virtual_clock]") {
  virtual_clock clock;
  std::string heard;
  clock.call_at(20, [&] { heard += 'c'; });
  clock.call_at(10, [&] {
    heard += 'a';
    clock.call_at(15, [&] { heard += 'b'; });
  });
  clock.call_at(20, [&] { heard += 'd'; });
  while (clock.step())
    heard += std::to_string(clock.now()) + ' ';
  CHECK(heard == "a10 b15 c20 d20 ");
}

TEST_CASE("the end of an instant comes when all its events have", "[virtual_clock]") {
  virtual_clock clock;
  std::string heard;
  clock.call_at(5, [&] {
    heard += 'a';
    clock.at_end_of_instant([&] { heard += '!'; }, end_of_instant::decisions);
    clock.call_at(5, [&] { heard += 'b'; });
  });
  clock.call_at(5, [&] { heard += 'c'; });
  clock.call_at(6, [&] { heard += 'd'; });
  while (clock.step())
    continue;
  CHECK(heard == "acb!d");
  CHECK(clock.now() == 6);
}

TEST_CASE("what the end of an instant sets for the same instant still belongs to it",
          "[virtual_clock]") {
  virtual_clock clock;
  std::string heard;
  clock.at_end_of_instant(
    [&] { clock.call_at(0, [&] { heard += std::to_string(clock.now()); }); },
    end_of_instant::decisions);
  clock.call_at(7, [&] { heard += std::to_string(clock.now()); });
  while (clock.step())
    continue;
  CHECK(heard == "07");
}

TEST_CASE("decisions of an instant come after all of its arrivals", "[virtual_clock]") {
  virtual_clock clock;
  std::string heard;
  clock.at_end_of_instant([&] { heard += 'd'; }, end_of_instant::decisions);
  clock.at_end_of_instant(
    [&] {
      heard += 'a';
      clock.call_at(0, [&] {
        heard += 'b';
        clock.at_end_of_instant([&] { heard += 'c'; }, end_of_instant::arrivals);
      });
    },
    end_of_instant::arrivals);
  while (clock.step())
    continue;
  CHECK(heard == "abcd");
}

TEST_CASE("a virtual device computes at the start and ends when the cost has passed",
          "[virtual_clock]") {
  virtual_clock clock;
  virtual_device device{clock, [](const work& w) { return w.kind == 1 ? 30 : 10; }};
  std::vector<nanoseconds> ends;
  bool ran = false;
  device.enqueue({.kind = 1, .run = [&] { ran = true; }}, [&](const work_end& e) {
    CHECK(e.start == 0);
    ends.push_back(e.end);
  });
  CHECK(ran);
  device.enqueue({}, [&](const work_end& e) {
    CHECK(e.start == 30); // a device does one thing at a time
    ends.push_back(e.end);
  });
  CHECK(ends.empty());
  while (clock.step())
    continue;
  CHECK(ends == std::vector<nanoseconds>{30, 40});
}

TEST_CASE("a virtual device that is stopped takes no more, and is idle",
          "[virtual_clock]") {
  virtual_clock clock;
  virtual_device device{clock, [](const work&) { return nanoseconds{5}; }};
  int computed = 0;
  const auto enqueue = [&] {
    device.enqueue({.run = [&] { ++computed; }}, [](const work_end&) {});
  };
  enqueue();
  CHECK_FALSE(device.idle());
  device.stop();
  CHECK(device.idle());
  enqueue();
  CHECK(device.idle());
  CHECK(computed == 1);
}

TEST_CASE("a virtual device that is stopped holds nothing for the ends of its works",
          "[virtual_clock]") {
  virtual_clock clock;
  virtual_device device{clock, [](const work&) { return nanoseconds{5}; }};
  int told = 0;
  auto held = std::make_shared<int>();
  const std::weak_ptr<int> there = held;
  device.enqueue({}, [held = std::move(held), &told](const work_end&) { ++told; });
  CHECK_FALSE(there.expired());
  device.stop();
  CHECK(there.expired());
  while (clock.step())
    continue;
  CHECK(told == 0);
}

} // namespace troupe::virtual_clock_test
