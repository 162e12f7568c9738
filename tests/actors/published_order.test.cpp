// SPDX-License-Identifier: BSD-3-Clause
// AMPNet's rule, for which no formula is published: records that the check accepts and
// refuses.

#include "actors/proof/published_order.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <string>
#include <utility>
#include <vector>

namespace troupe::published_order_test {

using Catch::Matchers::ContainsSubstring;
using published::recorded_action;
using published::rule;

namespace {

/// Two stages, F=1 B=1, two in flight, an update of two gradients: as the picture of
/// schedules/ampnet.cpp.
std::vector<std::vector<recorded_action>> recorded() {
  const auto f = op::forward, b = op::backward, u = op::update;
  return {{{f, 0, 0, 1},
           {f, 1, 1, 2},
           {b, 0, 3, 4},
           {f, 2, 4, 5},
           {b, 1, 5, 6},
           {u, 1, 6, 6, 2},
           {f, 3, 6, 7},
           {b, 2, 7, 8},
           {b, 3, 9, 10},
           {u, 3, 10, 10, 2}},
          {{f, 0, 1, 2},
           {b, 0, 2, 3},
           {f, 1, 3, 4},
           {b, 1, 4, 5},
           {u, 1, 5, 5, 2},
           {f, 2, 5, 6},
           {b, 2, 6, 7},
           {f, 3, 7, 8},
           {b, 3, 8, 9},
           {u, 3, 9, 9, 2}}};
}

const rule two_keys{.name = "ampnet", .max_active_keys = 2, .min_update_frequency = 2};

std::string breach(const std::vector<std::vector<recorded_action>>& stages,
                   bool exact = true, const rule& by = two_keys) {
  published::recorded_times times;
  if (exact)
    times.latency = [](op, int, int) { return std::int64_t{0}; };
  return published::first_breach_of_ampnet(by, {2, 4, 1}, stages, times);
}

} // namespace

TEST_CASE("ampnet's rule takes the record that follows it", "[published]") {
  CHECK(breach(recorded()).empty());
  CHECK(breach(recorded(), false).empty());
}

TEST_CASE("ampnet's rule refuses every other choice", "[published]") {
  auto stages = recorded();
  auto &first = stages[0], &last = stages[1];
  SECTION("a forward before a backward that had arrived") {
    const auto f = op::forward, b = op::backward, u = op::update;
    first = {{f, 0, 0, 1},    {f, 1, 1, 2},     {b, 0, 4, 5}, {b, 1, 5, 6},
             {u, 1, 6, 6, 2}, {f, 2, 6, 7},     {f, 3, 7, 8}, {b, 2, 9, 10},
             {b, 3, 11, 12},  {u, 3, 12, 12, 2}};
    last = {{f, 0, 1, 2},    {f, 1, 2, 3},     {b, 0, 3, 4}, {b, 1, 4, 5},
            {u, 1, 5, 5, 2}, {f, 2, 7, 8},     {b, 2, 8, 9}, {f, 3, 9, 10},
            {b, 3, 10, 11},  {u, 3, 11, 11, 2}};
    CHECK_THAT(breach(stages),
               ContainsSubstring("stage 1: F1 began at 2 ns; by the rule it was B0"));
    CHECK_THAT(breach(stages, false),
               ContainsSubstring("F1 ran before B0, which had arrived"));
  }
  SECTION("a later microbatch before an earlier one") {
    std::swap(first[0].microbatch, first[1].microbatch);
    CHECK_THAT(breach(stages), ContainsSubstring("stage 0: F1 began at 0 ns"));
    CHECK_THAT(breach(stages, false), ContainsSubstring("F1 ran before F0"));
  }
  SECTION("an action that begins later than it could") {
    ++first[7].start;
    CHECK_THAT(breach(stages), ContainsSubstring("B2 began at 8 ns"));
    CHECK(breach(stages, false).empty()); // arrival times are unknown
  }
  SECTION("an action before its input") {
    first[2] = {op::backward, 0, 2, 4};
    CHECK_THAT(breach(stages), ContainsSubstring("B0 began at 2 ns"));
    CHECK_THAT(breach(stages, false), ContainsSubstring("before its input had ended"));
  }
  SECTION("more in flight than there are keys") {
    const auto& exact = GENERATE(true, false);
    CHECK_THAT(
      breach(stages, exact,
             {.name = "ampnet", .max_active_keys = 1, .min_update_frequency = 2}),
      ContainsSubstring("F1 began with 1 microbatches in flight"));
    CHECK_THAT(
      breach(stages, true,
             {.name = "ampnet", .max_active_keys = 3, .min_update_frequency = 2}),
      ContainsSubstring("by the rule it was F2 at 2 ns"));
  }
  SECTION("an update too early, too late, or of other gradients") {
    const auto& exact = GENERATE(true, false);
    const auto of = [&](int k) {
      return breach(
        stages, exact,
        {.name = "ampnet", .max_active_keys = 2, .min_update_frequency = k});
    };
    CHECK_THAT(of(1), ContainsSubstring("F2 began while 1 gradients waited"));
    CHECK_THAT(of(3), ContainsSubstring("an update began with only 2 gradients"));
    first[5].gradients = 3;
    CHECK_THAT(of(2),
               ContainsSubstring("an update reports 3 gradients, but 2 were summed"));
  }
  SECTION("an update that begins late") {
    first[9].start = first[9].end = 11;
    CHECK_THAT(breach(stages), ContainsSubstring("an update began at 11 ns"));
    CHECK(breach(stages, false).empty());
  }
  SECTION("what is left out") {
    const auto& exact = GENERATE(true, false);
    auto row = first;
    first.erase(first.begin() + 9);
    CHECK_THAT(breach(stages, exact), ContainsSubstring("gradients of 2 microbatches"));
    first = row;
    first.erase(first.begin() + 5);
    CHECK_THAT(breach(stages, exact), ContainsSubstring("F3 began while 2 gradients"));
    first = row;
    first.resize(7);
    CHECK_THAT(breach(stages, exact), ContainsSubstring("2 backwards missing"));
  }
}

} // namespace troupe::published_order_test
