// SPDX-License-Identifier: BSD-3-Clause
#include "messaging/chunks.hpp"

#include <catch2/catch_test_macros.hpp>

#include <stdexcept>

namespace troupe::chunks_test {

TEST_CASE("even chunks cover the array and differ by one value at most", "[chunks]") {
  for (const int count : {1, 2, 3, 7, 16})
    for (const std::int64_t values : {0, 1, 5, 16, 1001}) {
      const auto cut = chunks::even(values, count);
      CHECK(cut.begin(0) == 0);
      CHECK(cut.begin(count) == values);
      for (int c = 0; c < count; ++c) {
        CHECK(cut.size({c, 1}) >= values / count);
        CHECK(cut.size({c, 1}) <= (values + count - 1) / count);
      }
    }
}

TEST_CASE("a range of chunks goes on from the last to the first", "[chunks]") {
  const auto cut = chunks::of_sizes({3, 0, 4, 2});
  CHECK(cut.values() == 9);
  CHECK(cut.size({1, 2}) == 4);
  CHECK(cut.size({2, 3}) == 9);
  const auto [tail, head] = cut.ranges({3, 2});
  CHECK((tail.begin == 7 && tail.end == 9));
  CHECK((head.begin == 0 && head.end == 3));
}

TEST_CASE("boundaries that descend or do not begin with 0 are refused", "[chunks]") {
  CHECK_THROWS_AS((chunks{{0, 4, 3}}), std::logic_error);
  CHECK_THROWS_AS((chunks{{1, 4}}), std::logic_error);
  CHECK_THROWS_AS((chunks{{0}}), std::logic_error);
  CHECK((chunks{{0, 0, 4}}).values() == 4);
}

} // namespace troupe::chunks_test
