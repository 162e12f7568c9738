// SPDX-License-Identifier: BSD-3-Clause
#include "experiments/session/collectives.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <cmath>

namespace troupe::collectives_test {

using Catch::Matchers::ContainsSubstring;

namespace {

constexpr link_cost usual{.latency = 10'000, .bytes_per_second = 1e10};

std::string refusal_of(const std::function<void(typed_collectives&)>& change) {
  typed_collectives typed;
  change(typed);
  const auto asked = parse(typed);
  return asked ? "" : asked.error();
}

double seconds(const collective_order& order, int ranks, double bytes) {
  const auto chunk = static_cast<std::int64_t>(bytes) / 4 / ranks;
  return static_cast<double>(
           perform({order, ranks, chunk * ranks, {.inside = usual}}).makespan)
         / 1e9;
}

} // namespace

TEST_CASE("a ring beats a tree from the size that the book says", "[collectives]") {
  const int ranks = GENERATE(4, 8, 16, 64);
  const auto found = ring_beats_tree(ranks, usual);
  REQUIRE(found);
  INFO(ranks << " ranks: " << found->measured << ", by formula "
             << found->formula_bytes);
  CHECK(std::abs(found->measured - found->formula_bytes) < 0.01 * found->formula_bytes);
  const auto levels = std::log2(ranks);
  CHECK(std::abs(found->formula_bytes
                 - (ranks - 1 - levels) * 1e5 / (levels - (ranks - 1.0) / ranks))
        < 1e-6 * found->formula_bytes);
  for (const auto& [factor, ring_wins] : {std::pair{0.9, false}, {1.1, true}}) {
    const double bytes = factor * found->measured;
    CHECK((seconds(ring_all_reduce(), ranks, bytes)
           < seconds(tree_all_reduce(), ranks, bytes))
          == ring_wins);
  }
}

TEST_CASE("where sums take time a ring beats a tree earlier", "[collectives]") {
  const int ranks = GENERATE(4, 8, 64);
  constexpr double adds = 1e10;
  const auto found = ring_beats_tree(ranks, usual, adds);
  REQUIRE(found);
  CHECK(std::abs(found->measured - found->formula_bytes) < 0.01 * found->formula_bytes);
  const auto levels = std::log2(ranks);
  // At each level the tree sends an array twice and adds an array once. The ring does
  // so with (K - 1) / K of an array in all.
  CHECK(
    std::abs(found->formula_bytes
             - 2 * (ranks - 1 - levels) * 1e5 / (3 * (levels - (ranks - 1.0) / ranks)))
    < 1e-6 * found->formula_bytes);
  CHECK(found->formula_bytes < ring_beats_tree(ranks, usual)->formula_bytes);
}

TEST_CASE("without latency, or with few ranks, a ring is never slower",
          "[collectives]") {
  CHECK_FALSE(ring_beats_tree(2, usual));
  CHECK_FALSE(ring_beats_tree(8, {.latency = 0, .bytes_per_second = 1e10}));
  CHECK_FALSE(ring_beats_tree(8, {.latency = 10, .bytes_per_second = 0}));
}

TEST_CASE("a measurement says how much of it was checked", "[collectives]") {
  typed_collectives o;
  o.values = 1 << 22;
  o.latency = 0.5;
  const auto asked = parse(o);
  REQUIRE(asked);
  CHECK(asked->machines.model.inside.latency == 500'000);
  const auto m = measure(*asked, ring_all_reduce(), 8);
  CHECK(m.is_right);
  CHECK(m.checked_values == 1 << 21); // eight arrays of 8 MiB
  CHECK(m.sent.bytes == 2 * 7 * std::int64_t{4 << 22});
  CHECK(std::abs(m.seconds - m.formula_seconds.value()) < 1e-6);
  o.sum = 1e9;
  const auto with_sums = measure(*parse(o), ring_all_reduce(), 8);
  CHECK(with_sums.is_right);
  const double adds = 7.0 / 8 * (4 << 22) / 1e9;
  CHECK(std::abs(with_sums.seconds - m.seconds - adds) < 1e-6);
  CHECK(std::abs(with_sums.seconds - with_sums.formula_seconds.value()) < 1e-6);
}

TEST_CASE("what a collective cannot be is refused with what it can", "[collectives]") {
  CHECK(refusal_of([](typed_collectives&) {}).empty());
  CHECK_THAT(refusal_of([](typed_collectives& o) {
               o.ranks = {4, 1025};
             }),
             ContainsSubstring("1 to 1,024 ranks"));
  CHECK_THAT(refusal_of([](typed_collectives& o) { o.values = -1; }),
             ContainsSubstring("0 to 1,000,000,000,000 values"));
  CHECK_THAT(refusal_of([](typed_collectives& o) { o.values = o.bytes = 8; }),
             ContainsSubstring("leave --values or --bytes out"));
  CHECK_THAT(refusal_of([](typed_collectives& o) { o.bytes = 7; }),
             ContainsSubstring("a multiple of 4"));
  CHECK_THAT(
    refusal_of([](typed_collectives& o) { o.operations = {"allreduce"}; }),
    ContainsSubstring(
      "no operation 'allreduce' (did you mean 'all_reduce'?); there are send"));
  CHECK_THAT(refusal_of([](typed_collectives& o) { o.algorithms = {"butterfly"}; }),
             ContainsSubstring("no algorithm 'butterfly'; there are direct"));
  CHECK_THAT(refusal_of([](typed_collectives& o) { o.latency = std::nan(""); }),
             ContainsSubstring("a latency is from 0"));
  CHECK_THAT(refusal_of([](typed_collectives& o) { o.bandwidth = 0.5; }),
             ContainsSubstring("--bandwidth 0.5: give 1 to 1e15"));
  CHECK_THAT(refusal_of([](typed_collectives& o) { o.sum = 0.5; }),
             ContainsSubstring("--sum 0.5: give 1 to 1e15"));
  CHECK_THAT(refusal_of([](typed_collectives& o) {
               o.values = 1'000'000'000'000;
               o.sum = 1;
             }),
             ContainsSubstring("292 years"));
}

} // namespace troupe::collectives_test
