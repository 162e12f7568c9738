// SPDX-License-Identifier: BSD-3-Clause
// Bayesian search over tables of options, and the Gaussian process below it.

#include "planner/gaussian_process.hpp"
#include "planner/least_squares.hpp"
#include "tests/dice.hpp"
#include "tests/planner/judged_cases.hpp"

#include <catch2/catch_test_macros.hpp>

namespace troupe::bayes_test {

using namespace troupe::judged_cases;
using planner::dense_matrix;

// The seconds of a row of options; unreachable if there is no such row.
double seconds_of(const json& table, const json& options) {
  for (const auto& row : table.at("rows")) {
    bool is_equal = row.size() == options.size() + 1;
    for (std::size_t i = 0; is_equal && i < options.size(); ++i)
      is_equal = row[i] == options[i];
    if (is_equal && !row.back().is_null())
      return row.back().get<double>();
  }
  return unreachable;
}

TEST_CASE("32 askings find options within 3% of the best in 18 of 20 seeds") {
  for (const auto& table : cases_of("options")) {
    INFO(table.at("name"));
    int good = 0;
    for (int seed = 0; seed < 20; ++seed) {
      const auto answer = asked(table, "bayes:seed=" + std::to_string(seed));
      CHECK(is_near(seconds_of(table, answer.at("plan")), answer.at("cost")));
      good += answer.at("cost").get<double>()
              <= 1.03 * table.at("expected").at("cost").get<double>();
    }
    CHECK(good >= 18);
  }
}

TEST_CASE(
  "a search that may ask for every row finds the best, and none if none can run") {
  json table{{"name", "t"}, {"kind", "options"}, {"columns", {"a", "b", "seconds"}}};
  double best = unreachable;
  dice random{5};
  for (int a = 1; a <= 4; ++a)
    for (const auto* b : {"x", "y", "z"}) {
      const bool runs = random.number(0, 3) > 0;
      const double seconds = random.number(1, 100);
      table["rows"].push_back({a, b, runs ? json(seconds) : json(nullptr)});
      best = runs ? std::min(best, seconds) : best;
    }
  CHECK(asked(table, "bayes").at("cost") == best);
  for (auto& row : table["rows"])
    row.back() = nullptr;
  CHECK(asked(table, "bayes") == json{{"cost", nullptr}});
}

// A row of unknown seconds costs an asking: the first row of a seed is drawn at random.
TEST_CASE("a search knows no seconds that were not asked for") {
  const auto table = cases_of("options").at(0);
  std::set<std::string> first_rows;
  for (int seed = 0; seed < 20; ++seed)
    first_rows.insert(
      asked(table, "bayes:askings=1,seed=" + std::to_string(seed)).at("plan").dump());
  CHECK(first_rows.size() > 15);
  // Six random rows, whatever their seconds are: the least of six grows with them.
  auto slower = table;
  for (auto& row : slower["rows"])
    if (!row.back().is_null())
      row.back() = 100 - row.back().get<double>();
  const auto fast = asked(table, "bayes:askings=1,seed=3");
  CHECK(asked(slower, "bayes:askings=1,seed=3").at("plan") == fast.at("plan"));
}

// One row of many is fast, and no other row tells which. A search that asks for a part
// of the rows finds that row in as large a part of the seeds.
TEST_CASE("a search asks for as many rows as it may, and for no more") {
  json table{{"name", "t"}, {"kind", "options"}, {"columns", {"row", "seconds"}}};
  for (int row = 0; row < 40; ++row)
    table["rows"].push_back({"r" + std::to_string(row), row == 17 ? 1 : 10});
  const auto found_with = [&](int askings) {
    int result = 0;
    for (int seed = 0; seed < 40; ++seed)
      result += asked(table, "bayes:askings=" + std::to_string(askings)
                               + ",seed=" + std::to_string(seed))
                  .at("cost")
                == 1;
    return result;
  };
  CHECK(found_with(40) == 40);
  const int with_half = found_with(20);
  CHECK(with_half >= 12); // 20 are expected, with a deviation of 3
  CHECK(with_half <= 28);
  CHECK(found_with(4) <= 11);
}

TEST_CASE("a process passes through known values, and doubts far ones") {
  const dense_matrix points{{0.}, {0.3}, {0.7}, {1.}};
  const std::vector<double> values{3, 2, 2.5, 4};
  const planner::gaussian_process process{points, values};
  for (std::size_t i = 0; i < points.size(); ++i) {
    const auto known = process.at(points[i]);
    CHECK(std::abs(known.mean - values[i]) < 0.2);
    CHECK(known.deviation < process.at({points[i][0] + 0.15}).deviation);
  }
  const auto far = process.at({100.});
  CHECK(is_near(far.mean, (3 + 2 + 2.5 + 4) / 4, 1e-6));
  CHECK(far.deviation > 10 * process.at({0.3}).deviation);
}

// E max(0, lowest - x) for x normal, by a sum over small steps.
TEST_CASE("expected improvement is the mean of improvements") {
  for (const auto& value : {planner::estimate{1, 0.5}, planner::estimate{-1, 2},
                            planner::estimate{3, 0.7}}) {
    const double lowest = 0.8, step = 1e-3;
    double sum = 0, weights = 0;
    for (double z = -8; z < 8; z += step) {
      const double weight = std::exp(-z * z / 2);
      weights += weight;
      sum += weight * std::max(0., lowest - (value.mean + z * value.deviation));
    }
    CHECK(is_near(planner::expected_improvement(value, lowest), sum / weights, 1e-5));
  }
}

TEST_CASE("Cholesky's factor multiplies to the matrix, and solves systems") {
  const dense_matrix a{{4, 0, 0}, {2, 5, 0}, {1, -2, 6}};
  const auto lower = planner::cholesky(a);
  REQUIRE(lower);
  for (std::size_t i = 0; i < 3; ++i)
    for (std::size_t j = 0; j <= i; ++j) {
      double product = 0;
      for (std::size_t k = 0; k < 3; ++k)
        product += (*lower)[i][k] * (*lower)[j][k];
      CHECK(is_near(product, a[i][j]));
    }
  const std::vector<double> x{1, -2, 3}, b{4 - 4 + 3, 2 - 10 - 6, 1 + 4 + 18};
  const auto solved =
    planner::solve_lower_transposed(*lower, planner::solve_lower(*lower, b));
  for (std::size_t i = 0; i < 3; ++i)
    CHECK(is_near(solved[i], x[i]));
  CHECK(!planner::cholesky({{1, 0}, {2, 4}})); // 4 = 2 * 2: singular
}

// Karush, Kuhn, Tucker: the gradient is 0 where x is above 0, and else 0 or more.
TEST_CASE("least squares of factors of 0 or more cannot be improved") {
  dice random{11};
  for (int count = 0; count < 50; ++count) {
    dense_matrix a(8, std::vector<double>(3));
    std::vector<double> b;
    for (auto& row : a) {
      for (auto& entry : row)
        entry = random.real(-1, 2);
      b.push_back(random.real(-1, 2));
    }
    const auto x = planner::positive_least_squares(a, b);
    REQUIRE(x.size() == 3);
    for (std::size_t i = 0; i < 3; ++i) {
      double gradient = 0;
      for (std::size_t row = 0; row < a.size(); ++row) {
        double error = -b[row];
        for (std::size_t k = 0; k < 3; ++k)
          error += a[row][k] * x[k];
        gradient += error * a[row][i];
      }
      CHECK(x[i] >= 0);
      CHECK(gradient > -1e-9);
      CHECK(std::abs(gradient * x[i]) < 1e-9);
    }
  }
}

} // namespace troupe::bayes_test
