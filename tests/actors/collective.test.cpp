// SPDX-License-Identifier: BSD-3-Clause
// Collectives that actors run in virtual time: the time that each takes, and the arrays
// that each leaves.

#include "actors/collectives/collective_run.hpp"
#include "messaging/collective_catalog.hpp"
#include "messaging/plain_collective.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/generators/catch_generators_range.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <algorithm>
#include <cmath>
#include <stdexcept>

namespace troupe::collective_test {

namespace {

/// A byte takes a nanosecond.
const machine_model slow{.inside = {.latency = 700, .bytes_per_second = 1e9}};

std::vector<std::vector<float>> arrays_of(int ranks, std::int64_t values) {
  std::vector<std::vector<float>> result(static_cast<std::size_t>(ranks));
  for (int r = 0; r < ranks; ++r)
    for (std::int64_t i = 0; i < values; ++i)
      result[static_cast<std::size_t>(r)].push_back(
        std::sin(static_cast<float>(100 * r + i)));
  return result;
}

} // namespace

TEST_CASE("one round in which all exchange n bytes takes latency + n / bandwidth",
          "[collective]") {
  const auto result = perform({halving_all_gather(), 2, 2000, slow});
  CHECK(result.makespan == 700 + 4000);
  CHECK(result.sent.rounds == 1);
  CHECK(result.sent.messages == 2);
  CHECK(result.sent.bytes == 8000);
  CHECK(result.sent.peak_bytes == 4000);
}

TEST_CASE("actors send what the book says, and are never slower", "[collective]") {
  const auto& order = GENERATE(from_range(collective_catalog()));
  for (const int ranks : {1, 2, 3, 4, 6, 8, 9, 13, 16, 17, 32}) {
    INFO(name_of(order.operation) << " by " << order.name << ", " << ranks << " ranks");
    const std::int64_t values = std::int64_t{ranks} * order.chunks(ranks);
    const auto result = perform({order, ranks, values, slow});
    const auto book = order.cost(ranks, 4.0 * static_cast<double>(values));
    CHECK(result.sent.rounds == book.rounds);
    CHECK(static_cast<double>(result.sent.messages) == book.messages);
    CHECK(result.sent.bytes == std::llround(book.bytes));
    CHECK(result.sent.peak_bytes == std::llround(book.peak_bytes));
    const auto by_the_book = std::llround(1e9 * book.seconds(700e-9, 1e9));
    CHECK(result.makespan <= by_the_book);
    if ((ranks & (ranks - 1)) == 0)
      CHECK(result.makespan == by_the_book);
  }
}

TEST_CASE("with sums actors take what the book says", "[collective]") {
  const auto& order = GENERATE(from_range(collective_catalog()));
  constexpr double adds = 4e8; // a value takes 10 ns
  for (const int ranks : {1, 2, 3, 4, 6, 8, 9, 13, 16, 17, 32}) {
    INFO(name_of(order.operation) << " by " << order.name << ", " << ranks << " ranks");
    const std::int64_t values = std::int64_t{ranks} * order.chunks(ranks);
    const auto result = perform({.order = order,
                                 .ranks = ranks,
                                 .values = values,
                                 .machines = slow,
                                 .sum_rate = adds});
    const auto book = order.cost(ranks, 4.0 * static_cast<double>(values));
    const auto by_the_book = std::llround(1e9 * book.seconds(700e-9, 1e9, adds));
    if ((ranks & (ranks - 1)) == 0)
      CHECK(result.makespan == by_the_book);
    else if (order.name != "halving")
      CHECK(result.makespan <= by_the_book);
    CHECK(result.sent.messages == static_cast<std::int64_t>(book.messages));
  }
}

TEST_CASE("actors leave the bits of a plain loop", "[collective]") {
  const auto& order = GENERATE(from_range(collective_catalog()));
  const double sum_rate = GENERATE(0.0, 1e9);
  for (const int ranks : {1, 2, 5, 8})
    for (const std::int64_t values : {0, 3, 97}) {
      const auto arrays = arrays_of(ranks, values);
      std::vector<const float*> views;
      for (const auto& array : arrays)
        views.push_back(array.data());
      const auto expected =
        plain_collective(order, views, chunks::even(values, order.chunks(ranks)));
      const auto result = perform({.order = order,
                                   .ranks = ranks,
                                   .values = values,
                                   .machines = slow,
                                   .sum_rate = sum_rate,
                                   .arrays = arrays});
      INFO(name_of(order.operation)
           << " by " << order.name << ", " << ranks << " ranks");
      for (std::size_t r = 0; r < expected.size(); ++r)
        CHECK(std::equal(expected[r].values.begin(), expected[r].values.end(),
                         result.arrays[r].begin() + expected[r].begin));
    }
}

TEST_CASE("an order that waits for what nobody sends ends with who waits for whom",
          "[collective]") {
  const collective_order broken{
    .operation = collective_operation::broadcast,
    .name = "broken",
    .idea = "everyone waits for the next",
    .chunks = [](int) { return 1; },
    .steps = [](int) { return 1; },
    .step = [](int rank, int ranks, int) -> collective_step {
      return {.from = (rank + 1) % ranks, .received = {0, 1}};
    },
    .cost = nullptr,
    .growth = ""};
  using Catch::Matchers::ContainsSubstring;
  CHECK_THROWS_MATCHES(
    perform({broken, 3, 8, slow}), std::runtime_error,
    Catch::Matchers::MessageMatches(
      ContainsSubstring("has stalled") && ContainsSubstring("a cycle: ")
      && ContainsSubstring("member 0 waits for the message of round 0 from member 1")));
}

TEST_CASE("a member that fails ends the collective with its words", "[collective]") {
  auto twice = direct_send(); // the root sends its message again
  twice.steps = [](int) { return 2; };
  twice.step = [](int rank, int, int index) -> collective_step {
    if (rank == 0)
      return {.to = 1, .sent = {0, 1}};
    return index == 0 ? collective_step{.from = 0, .received = {0, 1}}
                      : collective_step{};
  };
  using Catch::Matchers::ContainsSubstring;
  CHECK_THROWS_MATCHES(
    perform({twice, 2, 8, slow}), std::runtime_error,
    Catch::Matchers::MessageMatches(ContainsSubstring("member 1")
                                    && ContainsSubstring("when it was done")));
}

} // namespace troupe::collective_test
