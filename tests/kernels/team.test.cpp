// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/team.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include <atomic>
#include <stdexcept>
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

} // namespace troupe::team_test
