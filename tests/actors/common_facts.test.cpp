// SPDX-License-Identifier: BSD-3-Clause
// The facts that decide a run's bits are the same in all processes and attempts.

#include "actors/nodes/common_facts.hpp"

#include "actors/nodes/cpu_arithmetic.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

namespace troupe::common_facts_test {

using Catch::Matchers::ContainsSubstring;

TEST_CASE("a process with another fact than the run's is refused, and named",
          "[nodes]") {
  common_facts all;
  CHECK(all.add("node a:1", {{"data", "text, 10 bytes"}, {"sum", "1"}}).empty());
  CHECK(all.add("node b:1", {{"data", "text, 10 bytes"}, {"sum", "1"}}).empty());
  CHECK(all.add("node c:1", {{"sum", "1"}}).empty()); // this node has no such fact
  const auto wrong = all.add("node d:1", {{"data", "text, 11 bytes"}, {"sum", "1"}});
  CHECK_THAT(wrong, ContainsSubstring("node d:1 has text, 11 bytes, and node a:1 has "
                                      "text, 10 bytes"));
  // Another attempt, on the one node that is left: this node's facts have changed.
  CHECK(all.add("node b:1", {{"data", "text, 10 bytes"}, {"sum", "1"}}).empty());
  CHECK_THAT(all.add("node a:1", {{"data", "text, 9 bytes"}}),
             ContainsSubstring("node a:1 has text, 9 bytes, and node a:1 had text, 10 "
                               "bytes"));
  CHECK_THAT(all.add("node b:1", {{"sum", "2"}}), ContainsSubstring("the same sum"));
}

TEST_CASE("sums of a CPU's arithmetic are the same each time", "[nodes]") {
  CHECK(sum_of_first_values().size() == 16);
  CHECK(sum_of_first_values() == sum_of_first_values());
  CHECK(sum_of_small_training() == sum_of_small_training());
  CHECK(sum_of_small_training() != sum_of_first_values());
}

} // namespace troupe::common_facts_test
