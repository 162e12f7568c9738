// SPDX-License-Identifier: BSD-3-Clause
// Bayesian search: a Gaussian process over the options of a training, which asks for
// the seconds of the row with the largest expected improvement. Snoek, Larochelle,
// Adams, "Practical Bayesian Optimization of Machine Learning Algorithms", NeurIPS
// 2012. Alipourfard et al., "CherryPick", NSDI 2017, choose machines by the same
// search.
//
//   6 rows at random, then  argmax over rows  E max(0, lowest - log seconds)
//
// Numbers above 0 are powers of two: a coordinate is their logarithm, scaled to 0 to 1.
// A name has a coordinate of 0 or 1 for each name of its column.

#include "planner/gaussian_process.hpp"
#include "planner/random_draws.hpp"
#include "planner/searches/searches.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <numeric>
#include <set>

namespace troupe::planner {

namespace {

constexpr int random_rows = 6;

using row_list = std::vector<const options_row*>;

void add_numbers(dense_matrix& points, std::vector<double> column) {
  if (std::ranges::all_of(column, [](double x) { return x > 0; }))
    for (double& x : column)
      x = std::log2(x);
  const auto [least, most] = std::ranges::minmax(column);
  const double range = most > least ? most - least : 1;
  for (std::size_t row = 0; row < column.size(); ++row)
    points[row].push_back((column[row] - least) / range);
}

void add_names(dense_matrix& points, const std::vector<std::string>& column) {
  for (const auto& name : std::set<std::string>(column.begin(), column.end()))
    for (std::size_t row = 0; row < column.size(); ++row)
      points[row].push_back(column[row] == name ? 1 : 0);
}

// A point for each row: the coordinates of all options.
dense_matrix points_of(const row_list& rows) {
  dense_matrix points(rows.size());
  const std::size_t columns = rows.empty() ? 0 : rows[0]->values.size();
  for (std::size_t column = 0; column < columns; ++column) {
    std::vector<double> numbers;
    std::vector<std::string> names;
    for (const auto* row : rows) {
      const auto& value = row->values[column];
      if (const auto* number = std::get_if<double>(&value))
        numbers.push_back(*number);
      else
        names.push_back(std::get<std::string>(value));
    }
    if (names.empty())
      add_numbers(points, std::move(numbers));
    else if (numbers.empty())
      add_names(points, names);
    else
      for (std::size_t row = 0; row < rows.size(); ++row)
        points[row].push_back(0); // neither order nor equality: a constant
  }
  return points;
}

class search_state {
public:
  search_state(row_list rows, std::uint64_t seed)
    : rows_(std::move(rows)), points_(points_of(rows_)), order_(rows_.size()) {
    std::iota(order_.begin(), order_.end(), std::size_t{0});
    random_draws draws{seed};
    for (std::size_t i = 0; i < order_.size(); ++i)
      std::swap(order_[i], order_[i
                                  + static_cast<std::size_t>(
                                    draws.below(static_cast<int>(order_.size() - i)))]);
  }

  /// Measures one more row.
  void ask() {
    const std::size_t row =
      asked_.size() < random_rows ? order_[asked_.size()] : most_promising();
    asked_.push_back(row);
    logarithms_.push_back(
      std::log(std::max(*rows_[row]->seconds, std::numeric_limits<double>::min())));
  }

  const options_row& best() const {
    return *rows_[asked_[static_cast<std::size_t>(std::ranges::min_element(logarithms_)
                                                  - logarithms_.begin())]];
  }

private:
  std::size_t most_promising() const {
    dense_matrix known;
    for (const auto row : asked_)
      known.push_back(points_[row]);
    const gaussian_process process{std::move(known), logarithms_};
    const double lowest = *std::ranges::min_element(logarithms_);
    std::size_t best = rows_.size();
    double most = 0;
    for (const auto row : order_) {
      if (std::ranges::find(asked_, row) != asked_.end())
        continue;
      const double gain = expected_improvement(process.at(points_[row]), lowest);
      if (best == rows_.size() || gain > most) {
        best = row;
        most = gain;
      }
    }
    return best;
  }

  row_list rows_;
  dense_matrix points_;
  std::vector<std::size_t> order_; // of random rows, and of equal gains
  std::vector<std::size_t> asked_;
  std::vector<double> logarithms_; // of the seconds of asked rows
};

} // namespace

outcome bayes(const options_problem& problem, const search_options& options) {
  row_list rows;
  for (const auto& row : problem.rows)
    if (row.seconds)
      rows.push_back(&row);
  const int askings = std::min(options.askings, static_cast<int>(rows.size()));
  if (askings < 1)
    return answer{};
  search_state state{std::move(rows), options.seed};
  for (int asking = 0; asking < askings; ++asking)
    state.ask();
  return judged(problem, options_plan{state.best().values});
}

} // namespace troupe::planner
