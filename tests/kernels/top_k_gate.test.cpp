// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/top_k_gate.hpp"

#include "kernels/dispatch.hpp"
#include "tests/kernels/numbers.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include <algorithm>
#include <cmath>

namespace troupe::top_k_gate_test {

namespace {

/// A gate's table with logits in place of probabilities.
struct gate_run {
  gate_run(const std::vector<double>& logits, gate_rule rule)
    : rows(static_cast<std::int64_t>(logits.size()) / rule.experts),
      memory(static_cast<std::size_t>(
        gate_table<double>::values(rows, rule.experts, rule.chosen))),
      table(memory.data(), rows, rule) {
    std::ranges::copy(logits, table.probabilities);
    stream on;
    top_k_gate<double>::forward(table, on);
  }

  std::vector<int> places() const {
    return {table.positions, table.positions + rows * table.rule.chosen};
  }
  std::vector<int> chosen() const {
    return {table.chosen, table.chosen + rows * table.rule.chosen};
  }
  std::vector<int> counts() const {
    return {table.counts, table.counts + table.rule.experts};
  }

  std::int64_t rows;
  std::vector<double> memory;
  gate_table<double> table;
};

} // namespace

TEST_CASE("a gate of one choice takes the most probable expert", "[gate]") {
  const gate_run run{{1, 3, 2, /**/ 5, 0, 0, /**/ 0, 0, 0, /**/ 0, 1, 9},
                     {.experts = 3, .chosen = 1, .capacity = 4}};
  CHECK(run.chosen() == std::vector{1, 0, 0, 2}); // ties go to the first
  CHECK(run.places() == std::vector{2, 0, 1, 3}); // sorted by expert
  CHECK(run.counts() == std::vector{2, 1, 1});
  const double sum = std::exp(1) + std::exp(3) + std::exp(2);
  CHECK(std::abs(run.table.weights[0] - std::exp(3) / sum) < 1e-12);
}

TEST_CASE("first choices go before second ones, and rows in their order", "[gate]") {
  // All rows choose expert 0 first, which has capacity for two.
  const gate_run run{{3, 2, 1, /**/ 3, 1, 2, /**/ 3, 2, 1},
                     {.experts = 3, .chosen = 2, .capacity = 2}};
  CHECK(run.chosen() == std::vector{0, 1, 0, 2, 0, 1});
  CHECK(run.places() == std::vector{0, 2, 1, 4, -1, 3});
  CHECK(run.counts() == std::vector{2, 2, 1});
  // The weights of the two chosen experts sum to one, dropped or not.
  CHECK(std::abs(run.table.weights[4] + run.table.weights[5] - 1) < 1e-12);
}

TEST_CASE("imbalance is 1 where all is even, and n where one has all", "[gate]") {
  const gate_rule rule{.experts = 2, .chosen = 1, .capacity = 9};
  CHECK(
    std::abs(top_k_gate<double>::imbalance(gate_run{{40, 0, 0, 40}, rule}.table) - 1)
    < 1e-12);
  CHECK(
    std::abs(top_k_gate<double>::imbalance(gate_run{{40, 0, 40, 0}, rule}.table) - 2)
    < 1e-12);
}

TEST_CASE("a gate's gradient is that of finite differences", "[gate]") {
  const int chosen = GENERATE(1, 2, 3);
  const gate_rule rule{.experts = 4, .chosen = chosen, .capacity = 3};
  const auto logits = random_values<double>(6 * 4, 1);
  const auto dweights = random_values<double>(6 * chosen, 2);
  const double balance = 0.3;
  const auto loss = [&](const std::vector<double>& at) {
    const gate_run run{at, rule};
    return dot({run.table.weights, run.table.weights + 6 * chosen}, dweights)
           + balance * top_k_gate<double>::imbalance(run.table);
  };
  const gate_run run{logits, rule};
  std::vector<double> dlogits(logits.size());
  stream on;
  top_k_gate<double>::backward(run.table, dweights.data(), balance, dlogits.data(), on);
  CHECK(relative_difference(dlogits, finite_differences(loss, logits)) < 1e-7);
}

TEST_CASE("rows go to experts and come back weighted", "[gate]") {
  const gate_run run{{1, 0, /**/ 0, 1, /**/ 2, 0},
                     {.experts = 2, .chosen = 1, .capacity = 1}};
  const std::vector<double> x{1, 2, 3, 4, 5, 6};
  std::vector<double> rows(4), y(6);
  stream on;
  dispatch<double>::send(run.table, dense(x.data(), 3, 2), rows.data(), on);
  // the third choice finds a full expert
  CHECK(rows == std::vector<double>{1, 2, 3, 4});
  dispatch<double>::combine(run.table, rows.data(), dense(y.data(), 3, 2), on);
  const double weight = 1 / (1 + std::exp(-1));
  const std::vector<double> expected{weight, 2 * weight, 3 * weight, 4 * weight, 0, 0};
  CHECK(relative_difference(y, expected) < 1e-12);
}

} // namespace troupe::top_k_gate_test
