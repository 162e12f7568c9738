// SPDX-License-Identifier: BSD-3-Clause
#include "schedules/time_layout.hpp"

#include <catch2/catch_test_macros.hpp>

#include <string>
#include <utility>

namespace troupe::time_layout_test {

namespace {

/// Records the times of parts as text: "0:0-5 " is rank 0 from 0 to 5.
struct noted {
  std::string text;
  time_layout layout;

  explicit noted(std::size_t ranks)
    : layout(ranks, [this](std::size_t rank, std::int64_t start, std::int64_t end) {
        text += std::to_string(rank) + ":" + std::to_string(start) + "-"
                + std::to_string(end) + " ";
      }) {
    // nop
  }

  std::string taken() { return std::exchange(text, {}); }
};

} // namespace

TEST_CASE("a part starts when its rank is free and all that it waits for is there",
          "[layout]") {
  noted n{2};
  const dependency message{0, 7, 1};
  n.layout.add(1, {3, {message}, {}});
  n.layout.add(1, {1, {}, {}});
  CHECK(n.taken().empty());
  CHECK(n.layout.waiting() == 1);
  n.layout.add(0, {5, {}, {message}});
  CHECK(n.taken() == "0:0-5 1:5-8 1:8-9 ");
  CHECK_FALSE(n.layout.waiting());
  CHECK(n.layout.open() == 0);
}

TEST_CASE("a milestone is there when all its givers have ended, for all its takers",
          "[layout]") {
  noted n{3};
  const dependency meeting{0, 0, 0, 3, 3};
  for (const std::size_t rank : {2, 0, 1}) {
    n.layout.add(rank, {static_cast<std::int64_t>(10 * (rank + 1)), {}, {meeting}});
    n.layout.add(rank, {1, {meeting}, {}});
  }
  CHECK(n.taken() == "2:0-30 0:0-10 1:0-20 0:30-31 2:30-31 1:30-31 ");
  CHECK(n.layout.open() == 0);
}

TEST_CASE("the latest of what a part waits for counts", "[layout]") {
  noted n{3};
  const dependency early{0, 0, 0}, late{1, 0, 0};
  n.layout.add(2, {1, {late, early}, {}});
  n.layout.add(0, {2, {}, {early}});
  n.layout.add(1, {9, {}, {late}});
  CHECK(n.taken() == "0:0-2 1:0-9 2:9-10 ");
}

TEST_CASE("long runs leave nothing behind", "[layout]") {
  noted n{2};
  for (int i = 0; i < 1000; ++i) {
    n.layout.add(0, {1, {}, {{0, 0, i}}});
    n.layout.add(1, {1, {{0, 0, i}}, {}});
    CHECK(n.layout.open() == 0);
  }
}

} // namespace troupe::time_layout_test
