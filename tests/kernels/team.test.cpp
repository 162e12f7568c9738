// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/team.hpp"

#include "kernels/processor_time.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <pthread.h>

#include <array>
#include <atomic>
#include <chrono>
#include <latch>
#include <stdexcept>
#include <thread>
#include <vector>

namespace troupe::team_test {

using troupe::team;

TEST_CASE("each slice runs once, on a worker of the team", "[team]") {
  const int size = GENERATE(1, 2, 4);
  team threads{size};
  CHECK(threads.size() == size);
  for (const int slices : {0, 1, 2, 7, 100}) {
    std::vector<std::atomic<int>> ran(static_cast<std::size_t>(slices));
    std::atomic<bool> known = true;
    threads.run(slices, [&](int slice, int worker) {
      ++ran[static_cast<std::size_t>(slice)];
      known = known && worker >= 0 && worker < size;
    });
    for (const auto& count : ran)
      CHECK(count == 1);
    CHECK(known);
  }
}

TEST_CASE("ranges cover everything once, and do not depend on the team", "[team]") {
  std::vector<std::vector<std::int64_t>> cuts;
  for (const int size : {1, 3}) {
    team threads{size};
    for (const std::int64_t count : {0, 1, 5, 64, 1000}) {
      std::vector<std::atomic<std::int64_t>> end_of(static_cast<std::size_t>(count)
                                                    + 1);
      threads.run_ranges(count, 4, [&](std::int64_t first, std::int64_t last, int) {
        end_of[static_cast<std::size_t>(first)] = last;
      });
      std::vector<std::int64_t> cut{0};
      while (cut.back() < count)
        cut.push_back(end_of[static_cast<std::size_t>(cut.back())]);
      CHECK(cut.back() == count);
      CHECK(cut.size() <= 17);
      cuts.push_back(cut);
    }
  }
  for (std::size_t i = 0; i < cuts.size() / 2; ++i)
    CHECK(cuts[i] == cuts[i + cuts.size() / 2]);
}

TEST_CASE("an exception on a helper reaches the caller", "[team]") {
  const int size = GENERATE(1, 2);
  team threads{size};
  const auto fail = [](int slice, int) {
    if (slice == 3)
      throw std::runtime_error("no");
  };
  CHECK_THROWS_AS(threads.run(8, fail), std::runtime_error);
  std::atomic<int> ran = 0;
  threads.run(8, [&](int, int) { ++ran; });
  CHECK(ran == 8);
}

namespace {

constexpr nanoseconds planted = 10'000'000, most_doubt = 1'000'000;

/// Computes until this thread has had a processor for 10 ms; returns the time in
/// nanoseconds.
nanoseconds compute() {
  const auto start = processor_clock{}.now();
  while (processor_clock{}.now() < start + planted) {
  }
  return processor_clock{}.now() - start;
}

/// Runs a slice on each thread of a team of two, and returns the caller's computing
/// time.
/// \param slice is called with the worker when both threads have begun
template <class Slice>
nanoseconds time_of_two(team& threads, const Slice& slice) {
  std::latch begun{2};
  const auto before = computing_time();
  threads.run(2, [&](int, int worker) {
    begun.arrive_and_wait();
    slice(worker);
  });
  return computing_time() - before;
}

} // namespace

TEST_CASE("the computing time of a kernel is that of the thread that computes longest",
          "[team]") {
  team threads{2};
  const processor_clock caller{pthread_self()};
  CHECK(time_of_two(threads,
                    [](int worker) {
                      if (worker == 0)
                        compute();
                    })
        >= planted - most_doubt);
  for (int kernel = 0; kernel < 2; ++kernel) { // the second does not count the first
    INFO("kernel " << kernel);
    const auto start = caller.now();
    std::atomic<nanoseconds> of_helper = 0;
    const auto computed = time_of_two(threads, [&](int worker) {
      if (worker == 0)
        return;
      const auto helper_start = processor_clock{}.now();
      while (caller.now() < start + 2 * most_doubt) { // until the caller waits
      }
      compute();
      of_helper = processor_clock{}.now() - helper_start;
    });
    CHECK(computed >= planted - most_doubt);
    CHECK(computed < of_helper + planted / 2);
  }
}

TEST_CASE("threads that compute at the same time are no sum", "[team]") {
  team threads{2};
  std::array<std::atomic<nanoseconds>, 2> times{};
  const auto computed = time_of_two(threads, [&](int worker) {
    const auto start = processor_clock{}.now();
    if (worker == 1)
      times[1] = compute();
    while (times[1] == 0) { // the caller computes as long as the helper
    }
    if (worker == 0)
      times[0] = processor_clock{}.now() - start;
  });
  CHECK(computed < times[0] + times[1] / 2);
}

TEST_CASE("a caller that waits for a helper without a processor does not compute",
          "[team]") {
  team threads{2};
  const processor_clock caller{pthread_self()};
  const auto start = caller.now();
  std::atomic<nanoseconds> of_helper = 0;
  const auto computed = time_of_two(threads, [&](int worker) {
    if (worker == 0)
      return;
    const auto helper_start = processor_clock{}.now();
    for (int i = 0; i < 250 && caller.now() < start + planted; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds{20});
    of_helper = processor_clock{}.now() - helper_start;
  });
  CHECK(computed < of_helper + planted / 2);
}

} // namespace troupe::team_test
