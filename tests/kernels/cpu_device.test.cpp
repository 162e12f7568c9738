// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/cpu_device.hpp"

#include "kernels/processor_time.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include <atomic>
#include <chrono>
#include <latch>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace troupe::cpu_device_test {

namespace {

/// Devices of one run, and a queue in which the test waits for ends.
struct some_devices {
  explicit some_devices(int threads, int count = 1, int team = 1) {
    for (int i = 0; i < count; ++i) {
      seen.push_back(std::make_unique<occupation>(clock));
      all.push_back(std::make_unique<cpu_device>(
        *seen.back(),
        threads > 0 ? std::make_shared<compute_threads>(threads, threads) : nullptr,
        team));
    }
  }

  wall_clock clock;
  std::vector<std::unique_ptr<occupation>> seen;
  std::vector<std::unique_ptr<cpu_device>> all;
};

} // namespace

TEST_CASE("a device computes on another thread, and says what it is at", "[device]") {
  some_devices one{1};
  auto& seen = *one.seen.front();
  std::latch may_go{1}, over{1};
  std::thread::id computed_on;
  one.all.front()->enqueue({.kind = 1,
                            .stage = 2,
                            .microbatch = 3,
                            .run =
                              [&] {
                                computed_on = std::this_thread::get_id();
                                may_go.wait(); // the enqueuing thread continues before
                              }},
                           [&](const work_end& e) {
                             CHECK(e.start <= e.end);
                             CHECK_FALSE(e.failure);
                             over.count_down();
                           });
  CHECK_FALSE(one.all.front()->idle());
  while (!seen.now())
    std::this_thread::yield();
  CHECK(seen.now()->current.kind == 1);
  CHECK(seen.now()->current.stage == 2);
  CHECK(seen.now()->current.microbatch == 3);
  may_go.count_down();
  over.wait();
  CHECK(computed_on != std::this_thread::get_id());
  CHECK_FALSE(seen.now());
  CHECK(seen.ended() == 1);
  CHECK(seen.longest(1) > 0);
  CHECK(seen.longest(0) == 0);
}

TEST_CASE("a work that sleeps has no processor meanwhile, and a work that computes has",
          "[device]") {
  constexpr nanoseconds planted = 10'000'000, most_doubt = 1'000'000;
  const bool sleeps = GENERATE(true, false);
  INFO((sleeps ? "sleeps" : "computes"));
  some_devices one{1};
  std::latch over{1};
  const auto sleep = [] { std::this_thread::sleep_for(std::chrono::milliseconds{10}); };
  const auto compute = [] {
    for (const auto start = processor_clock{}.now();
         processor_clock{}.now() < start + planted;) {
    }
  };
  work_end outcome;
  one.all.front()->enqueue(
    {.run = sleeps ? std::function<void()>{sleep} : std::function<void()>{compute}},
    [&](const work_end& e) {
      outcome = e;
      over.count_down();
    });
  over.wait();
  const auto wall = outcome.end - outcome.start;
  CHECK(outcome.off_processor_time >= 0);
  CHECK(outcome.off_processor_time <= wall);
  if (sleeps)
    CHECK(outcome.off_processor_time >= planted - most_doubt);
  else
    CHECK(wall - outcome.off_processor_time >= planted - most_doubt);
}

TEST_CASE("a work without arithmetic has no time without a processor", "[device]") {
  some_devices one{1};
  bool ended = false;
  one.all.front()->enqueue({}, [&](const work_end& e) {
    ended = true;
    CHECK(e.off_processor_time == 0);
  });
  CHECK(ended);
}

TEST_CASE("parts of a work run one after another, and each is told of", "[device]") {
  some_devices one{1};
  std::string heard;
  std::latch over{1};
  const auto part = [&](char name) {
    return work_part{0.5, [&heard, name] { heard += name; },
                     [&heard] { heard += '.'; }};
  };
  one.all.front()->enqueue({.parts = {part('a'), part('b')}}, [&](const work_end&) {
    heard += '!';
    over.count_down();
  });
  over.wait();
  CHECK(heard == "a.b.!");
}

TEST_CASE("work without arithmetic ends while it is enqueued", "[device]") {
  const int threads = GENERATE(0, 1);
  some_devices one{threads};
  bool ended = false;
  one.all.front()->enqueue({}, [&](const work_end&) { ended = true; });
  CHECK(ended);
}

TEST_CASE("work without arithmetic waits for the work before it", "[device]") {
  some_devices one{1};
  std::latch may_go{1}, over{2};
  std::string heard;
  one.all.front()->enqueue({.run = [&] { may_go.wait(); }}, [&](const work_end&) {
    heard += 'a';
    over.count_down();
  });
  one.all.front()->enqueue({}, [&](const work_end&) {
    heard += 'b';
    over.count_down();
  });
  may_go.count_down();
  over.wait();
  CHECK(heard == "ab");
}

TEST_CASE("works start in their turns, whoever enqueues first", "[device]") {
  some_devices one{1};
  std::latch over{3};
  std::string begun;
  const auto enqueue = [&](std::int64_t turn) {
    one.all.front()->enqueue(
      {.run = [&begun, turn] { begun += std::to_string(turn); }, .turn = turn},
      [&](const work_end&) { over.count_down(); });
  };
  enqueue(2);
  enqueue(1);
  CHECK_FALSE(one.all.front()->idle());
  enqueue(0);
  over.wait();
  CHECK(begun == "012");
}

TEST_CASE("what work throws is told at its end, and the next work runs", "[device]") {
  some_devices one{1};
  std::latch over{2};
  std::exception_ptr first, second;
  const auto told = [&](std::exception_ptr& where) {
    return [&](const work_end& e) {
      where = e.failure;
      over.count_down();
    };
  };
  one.all.front()->enqueue({.run = [] { throw std::runtime_error("no"); }},
                           told(first));
  one.all.front()->enqueue({.run = [] {}}, told(second));
  over.wait();
  REQUIRE(first);
  CHECK_THROWS_AS(std::rethrow_exception(first), std::runtime_error);
  CHECK_FALSE(second);
  CHECK_FALSE(one.seen.front()->now());
}

TEST_CASE("a device that is stopped forgets what has not begun", "[device]") {
  some_devices one{1};
  auto& device = *one.all.front();
  std::latch begun{1}, may_go{1}, over{1};
  std::atomic<int> ran = 0;
  device.enqueue({.run =
                    [&] {
                      begun.count_down();
                      may_go.wait();
                      ++ran;
                    }},
                 [&](const work_end&) { over.count_down(); });
  device.enqueue({.run = [&] { ++ran; }}, [](const work_end&) {});
  begun.wait();
  device.stop();
  device.enqueue({.run = [&] { ++ran; }}, [](const work_end&) {});
  may_go.count_down();
  over.wait();
  while (!device.idle())
    std::this_thread::yield();
  one.all.clear(); // joins
  CHECK(ran == 1);
}

TEST_CASE("no more threads compute at once than a run has", "[device]") {
  const int team = GENERATE(1, 2);
  constexpr int devices = 5, works = 40, threads = 2;
  wall_clock clock;
  const auto shared = std::make_shared<compute_threads>(threads, threads);
  std::atomic<int> now = 0, too_many = 0;
  std::latch over{devices * works};
  std::vector<std::unique_ptr<occupation>> seen;
  std::vector<std::unique_ptr<cpu_device>> all;
  for (int i = 0; i < devices; ++i) {
    seen.push_back(std::make_unique<occupation>(clock));
    all.push_back(std::make_unique<cpu_device>(*seen.back(), shared, team));
  }
  for (int i = 0; i < works; ++i)
    for (auto& one : all)
      one->enqueue({.run =
                      [&] {
                        too_many += (now += team) > threads;
                        std::this_thread::yield();
                        now -= team;
                      }},
                   [&](const work_end&) { over.count_down(); });
  over.wait();
  CHECK(too_many == 0);
}

TEST_CASE("work does not wait for a thread that has said it will be away", "[device]") {
  wall_clock clock;
  occupation seen_a{clock}, seen_b{clock};
  std::latch is_away{1}, ran{1}, may_return{1};
  bool first = true; // only the first work's thread leaves
  // ends before the devices
  const auto shared = std::make_shared<compute_threads>(2, 2);
  shared->visit = [&](const auto& tell, const compute_threads::thread_control& works) {
    const bool leaves = std::exchange(first, false);
    tell();
    if (!leaves)
      return;
    works.on_leave();
    is_away.count_down();
    may_return.wait();
  };
  cpu_device a{seen_a, shared, 1}, b{seen_b, shared, 1};
  a.enqueue({.run = [] {}}, [](const work_end&) {});
  is_away.wait();
  b.enqueue({.run = [&] { ran.count_down(); }}, [](const work_end&) {});
  ran.wait(); // on the other thread
  CHECK_FALSE(shared->quiet());
  may_return.count_down();
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

TEST_CASE("who knows of an end knows of all that came before it", "[device]") {
  const wall_clock clock;
  const auto first = std::make_shared<gpu_completion>();
  const auto second = std::make_shared<gpu_completion>(
    std::vector<std::shared_ptr<gpu_completion>>{first});
  const auto reader = std::make_shared<gpu_completion>(
    std::vector<std::shared_ptr<gpu_completion>>{second});
  first->record_start(clock);
  const auto read = reader->record_start(clock); // the first reported one
  const auto over = reader->record_end(clock);
  CHECK(read <= over);
  CHECK(first->record_end(clock) == read); // and not at this time
  CHECK(second->record_start(clock) == read);
  CHECK(second->record_end(clock) == read);
  CHECK(reader->record_end(clock) == over);
}

TEST_CASE("who has taken what was given knows that it was given, and not before",
          "[device]") {
  const wall_clock clock;
  const auto made = std::make_shared<gpu_completion>();
  const auto giver = std::make_shared<gpu_completion>(
    std::vector<std::shared_ptr<gpu_completion>>{made});
  const auto taker = std::make_shared<gpu_completion>();
  const auto begun = taker->record_start(clock);
  const bool told_late = GENERATE(false, true);
  if (!told_late)
    taker->receives_from(giver);
  const auto over = taker->record_end(clock);
  if (told_late) // by another thread
    taker->receives_from(giver);
  CHECK(begun <= over);
  CHECK(giver->record_end(clock) == over);
  CHECK(made->record_end(clock) == over);
  const auto slow = std::make_shared<gpu_completion>(),
             next = std::make_shared<gpu_completion>();
  next->receives_from(slow);
  const auto at = next->record_start(clock); // waits for the sender now
  while (clock.now() == at)
    continue;
  CHECK(slow->record_start(clock) > at);
}

} // namespace troupe::cpu_device_test
