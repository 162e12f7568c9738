#include "kernels/device.hpp"

#include <catch2/catch_test_macros.hpp>

#include <chrono>
#include <stdexcept>
#include <thread>

using namespace troupe;

TEST_CASE("the CPU runs work at once and says how long it took", "[device]") {
  wall_clock clock;
  occupation seen{clock};
  cpu_device cpu{seen};
  bool ran = false, ended = false;
  cpu.enqueue({.kind = 1,
               .stage = 2,
               .microbatch = 3,
               .run =
                 [&] {
                   ran = true;
                   const auto now = seen.now();
                   REQUIRE(now);
                   CHECK(now->what.kind == 1);
                   CHECK(now->what.stage == 2);
                   CHECK(now->what.microbatch == 3);
                 }},
              [&](nanoseconds start, nanoseconds end) {
                CHECK(ran);
                CHECK(start <= end);
                ended = true;
              });
  CHECK(ended);
  CHECK_FALSE(seen.now());
  CHECK(seen.ended() == 1);
  CHECK(seen.longest(1) > 0);
  CHECK(seen.longest(0) == 0);
}

TEST_CASE("work that throws is not counted as running for ever", "[device]") {
  wall_clock clock;
  occupation seen{clock};
  cpu_device cpu{seen};
  CHECK_THROWS_AS(
    cpu.enqueue({.run = [] { throw std::runtime_error("no"); }},
                [](nanoseconds, nanoseconds) { FAIL("it has not ended"); }),
    std::runtime_error);
  CHECK_FALSE(seen.now());
}

TEST_CASE("the wall clock stands still while paused", "[device]") {
  wall_clock clock;
  clock.pause();
  const auto before = clock.now();
  std::this_thread::sleep_for(std::chrono::milliseconds(2));
  CHECK(clock.now() == before);
  clock.resume();
  CHECK(clock.now() >= before);
  CHECK(clock.now() - before < 2'000'000);
}

TEST_CASE("a clock that is paused stands still, and goes on from there", "[device]") {
  using namespace std::chrono_literals;
  wall_clock clock;
  std::this_thread::sleep_for(1ms);
  clock.pause();
  const auto then = clock.now();
  CHECK(then >= 1'000'000);
  std::this_thread::sleep_for(2ms);
  CHECK(clock.now() == then);
  clock.resume();
  CHECK(clock.now() >= then);
  clock.pause();
  CHECK(clock.now() < then + 1'000'000'000);
  clock.restart();
  CHECK(clock.now() < 1'000'000'000);
}
