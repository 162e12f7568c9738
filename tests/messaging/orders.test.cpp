// SPDX-License-Identifier: BSD-3-Clause
// The orders as data: the messages of each, compared with published numbers.

#include "tests/messaging/post_office.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/generators/catch_generators_range.hpp>

#include <map>
#include <set>

namespace troupe::orders_test {

namespace {

/// The values that the steps of all ranks send, and the largest number that a rank
/// adds.
collective_cost sent_by_steps(const collective_order& order, int ranks,
                              std::int64_t values) {
  collective_cost result{};
  const auto cut = chunks::even(values, order.chunks(ranks));
  std::map<std::pair<int, int>, double> of_round; // and rank
  std::map<int, double> largest;                  // of a round
  for (int r = 0; r < ranks; ++r)
    for (int i = 0; i < order.steps(ranks); ++i) {
      const auto step = order.step(r, ranks, i);
      const auto bytes = static_cast<double>(cut.size(step.sent)) * sizeof(float);
      if (step.to == nobody || step.to == r || bytes == 0)
        continue;
      result.messages += 1;
      result.bytes += bytes;
      auto& sum = of_round[{step.round, r}];
      sum += bytes;
      result.peak_bytes = std::max(result.peak_bytes, sum);
      largest[step.round] = std::max(largest[step.round], bytes);
    }
  for (int r = 0; r < ranks; ++r) {
    double added = 0;
    for (int i = 0; i < order.steps(ranks); ++i)
      if (const auto step = order.step(r, ranks, i);
          step.from != nobody && step.use == reception::add)
        added += static_cast<double>(cut.size(step.received)) * sizeof(float);
    result.summed_bytes = std::max(result.summed_bytes, added);
  }
  result.rounds = static_cast<double>(largest.size());
  for (const auto& [round, bytes] : largest)
    result.serial_bytes += bytes;
  return result;
}

} // namespace

TEST_CASE("orders send and add what the book says, for any number of ranks",
          "[orders]") {
  const auto& order = GENERATE(from_range(collective_catalog()));
  for (int ranks = 1; ranks <= 33; ++ranks) {
    const std::int64_t values = std::int64_t{ranks} * order.chunks(ranks);
    const auto sent = sent_by_steps(order, ranks, values);
    const auto book = order.cost(ranks, static_cast<double>(4 * values));
    INFO(name_of(order.operation) << " by " << order.name << ", " << ranks << " ranks");
    CHECK(sent.rounds == book.rounds);
    CHECK(sent.messages == book.messages);
    CHECK(std::abs(sent.bytes - book.bytes) < 0.5);
    CHECK(std::abs(sent.peak_bytes - book.peak_bytes) < 0.5);
    CHECK(std::abs(sent.serial_bytes - book.serial_bytes) < 0.5);
    CHECK(std::abs(sent.summed_bytes - book.summed_bytes) < 0.5);
  }
}

TEST_CASE("every message that is sent is received by a step, in its size", "[orders]") {
  const auto& order = GENERATE(from_range(collective_catalog()));
  for (int ranks = 1; ranks <= 20; ++ranks) {
    std::set<std::tuple<int, int, int, int>> sent, received; // round, from, to, chunks
    for (int r = 0; r < ranks; ++r)
      for (int i = 0; i < order.steps(ranks); ++i) {
        const auto step = order.step(r, ranks, i);
        if (step.to != nobody)
          CHECK(sent.emplace(step.round, r, step.to, step.sent.count).second);
        if (step.from != nobody && step.use != reception::hold)
          CHECK(received.emplace(step.round, step.from, r, step.received.count).second);
      }
    CHECK(sent == received);
  }
}

TEST_CASE("an all_reduce around a ring is a reduce_scatter and an all_gather",
          "[orders]") {
  for (const int ranks : {2, 3, 8, 16}) {
    const auto values = 12 * ranks;
    const auto both = sent_by_steps(ring_all_reduce(), ranks, values);
    const auto first = sent_by_steps(ring_reduce_scatter(), ranks, values);
    const auto second = sent_by_steps(ring_all_gather(), ranks, values);
    CHECK(both.bytes == first.bytes + second.bytes);
    CHECK(both.rounds == first.rounds + second.rounds);
    CHECK(both.messages == first.messages + second.messages);
  }
}

TEST_CASE("the costs of all_reduce are those in print", "[orders]") {
  constexpr double n = 1024, alpha = 3, bandwidth = 2; // n / 8 and n / 2 are whole
  const auto seconds = [&](const collective_order& order) {
    return order.cost(8, n).seconds(alpha, bandwidth);
  };
  CHECK(seconds(naive_all_reduce()) == 7 * (alpha + n / bandwidth));
  CHECK(seconds(tree_all_reduce()) == 2 * 3 * (alpha + n / bandwidth));
  CHECK(seconds(ring_all_reduce()) == 2 * 7 * (alpha + n / 8 / bandwidth));
  CHECK(seconds(halving_all_reduce()) == 2 * 3 * alpha + 2 * 7 * n / 8 / bandwidth);
  CHECK(seconds(doubling_all_reduce()) == 3 * (alpha + n / bandwidth));
  CHECK(naive_all_reduce().cost(8, n).bytes == 8 * 7 * n);
  CHECK(doubling_all_reduce().cost(8, n).bytes == 8 * 3 * n);
  CHECK(ring_all_reduce().cost(8, n).bytes == 2 * 7 * n);
  CHECK(halving_all_reduce().cost(8, n).bytes == 2 * 7 * n);
  CHECK(tree_all_reduce().cost(8, n).bytes == 2 * 7 * n);
  CHECK(ring_all_reduce().cost(8, n).peak_bytes == n / 8);
}

TEST_CASE("the costs of sums are those in print", "[orders]") {
  // Thakur, Rabenseifner and Gropp, 2005, sections 4.4 and 4.5; the ring by Patarasuk
  // and Yuan, 2009.
  constexpr double n = 1024, alpha = 3, beta = 0.5, gamma = 0.25, p = 8, lg_p = 3;
  const auto seconds = [&](const collective_order& order) {
    return order.cost(8, n).seconds(alpha, 1 / beta, 1 / gamma);
  };
  CHECK(seconds(ring_all_reduce())
        == 2 * (p - 1) * alpha + 2 * (p - 1) / p * n * beta + (p - 1) / p * n * gamma);
  CHECK(seconds(doubling_all_reduce())
        == lg_p * alpha + n * lg_p * beta + n * lg_p * gamma);
  CHECK(seconds(halving_all_reduce())
        == 2 * lg_p * alpha + 2 * (p - 1) / p * n * beta + (p - 1) / p * n * gamma);
  CHECK(seconds(halving_reduce_scatter())
        == lg_p * alpha + (p - 1) / p * n * beta + (p - 1) / p * n * gamma);
  CHECK(seconds(tree_reduce()) == lg_p * (alpha + n * beta + n * gamma));
  CHECK(seconds(tree_broadcast()) == lg_p * (alpha + n * beta));
  CHECK(seconds(ring_all_gather()) == (p - 1) * alpha + (p - 1) / p * n * beta);
}

TEST_CASE("every order of the catalog is found by its operation and name", "[orders]") {
  for (const auto& order : collective_catalog()) {
    CHECK(find_collective(order.operation, order.name) == &order);
    CHECK_FALSE(order.idea.empty());
    CHECK_FALSE(order.growth.empty());
  }
  CHECK(find_collective(collective_operation::all_reduce, "zigzag") == nullptr);
  CHECK(operation_names()
        == "send, scatter, gather, broadcast, reduce, all_reduce, all_gather, "
           "reduce_scatter, all_to_all");
  CHECK(algorithm_names() == "direct, tree, naive, ring, halving, doubling, pairwise");
}

} // namespace troupe::orders_test
