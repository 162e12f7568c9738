// SPDX-License-Identifier: BSD-3-Clause
#include "planner/least_squares.hpp"

#include <algorithm>
#include <cmath>

namespace troupe::planner {

std::optional<dense_matrix> cholesky(const dense_matrix& a) {
  const std::size_t n = a.size();
  dense_matrix lower(n, std::vector<double>(n));
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = 0; j <= i; ++j) {
      double rest = a[i][j];
      for (std::size_t k = 0; k < j; ++k)
        rest -= lower[i][k] * lower[j][k];
      if (i != j)
        lower[i][j] = rest / lower[j][j];
      else if (rest > 1e-14 * a[i][i])
        lower[i][i] = std::sqrt(rest);
      else
        return std::nullopt;
    }
  return lower;
}

std::vector<double> solve_lower(const dense_matrix& lower, std::vector<double> b) {
  for (std::size_t i = 0; i < b.size(); ++i) {
    for (std::size_t k = 0; k < i; ++k)
      b[i] -= lower[i][k] * b[k];
    b[i] /= lower[i][i];
  }
  return b;
}

std::vector<double> solve_lower_transposed(const dense_matrix& lower,
                                           std::vector<double> b) {
  for (std::size_t i = b.size(); i-- > 0;) {
    for (std::size_t k = i + 1; k < b.size(); ++k)
      b[i] -= lower[k][i] * b[k];
    b[i] /= lower[i][i];
  }
  return b;
}

namespace {

// The x that minimises |a x - b| over some columns, by the normal equations. Columns
// have length 1. Absent if columns depend on each other.
std::optional<std::vector<double>>
solve_normal(const dense_matrix& a, const std::vector<double>& b,
             const std::vector<std::size_t>& columns) {
  dense_matrix gram(columns.size(), std::vector<double>(columns.size()));
  std::vector<double> right(columns.size());
  for (std::size_t row = 0; row < a.size(); ++row)
    for (std::size_t i = 0; i < columns.size(); ++i) {
      right[i] += a[row][columns[i]] * b[row];
      for (std::size_t j = 0; j <= i; ++j)
        gram[i][j] += a[row][columns[i]] * a[row][columns[j]];
    }
  const auto lower = cholesky(gram);
  if (!lower)
    return std::nullopt;
  return solve_lower_transposed(*lower, solve_lower(*lower, right));
}

double squared_error(const dense_matrix& a, const std::vector<double>& b,
                     const std::vector<double>& x) {
  double sum = 0;
  for (std::size_t row = 0; row < a.size(); ++row) {
    double error = -b[row];
    for (std::size_t i = 0; i < x.size(); ++i)
      error += a[row][i] * x[i];
    sum += error * error;
  }
  return sum;
}

} // namespace

std::vector<double> positive_least_squares(const dense_matrix& a,
                                           const std::vector<double>& b) {
  const std::size_t count = a.empty() ? 0 : a[0].size();
  std::vector<double> length(count);
  for (const auto& row : a)
    for (std::size_t i = 0; i < count; ++i)
      length[i] += row[i] * row[i];
  auto scaled = a;
  for (auto& row : scaled)
    for (std::size_t i = 0; i < count; ++i)
      row[i] = length[i] > 0 ? row[i] / std::sqrt(length[i]) : 0;
  std::vector<double> best(count);
  double least = squared_error(scaled, b, best);
  for (unsigned set = 1; set < 1U << count; ++set) {
    std::vector<std::size_t> columns;
    for (std::size_t i = 0; i < count; ++i)
      if ((set >> i & 1U) != 0 && length[i] > 0)
        columns.push_back(i);
    const auto values = solve_normal(scaled, b, columns);
    if (!values || std::ranges::any_of(*values, [](double x) { return x < 0; }))
      continue;
    std::vector<double> x(count);
    for (std::size_t i = 0; i < columns.size(); ++i)
      x[columns[i]] = (*values)[i];
    if (const double error = squared_error(scaled, b, x); error < least) {
      least = error;
      best = std::move(x);
    }
  }
  for (std::size_t i = 0; i < count; ++i)
    if (length[i] > 0)
      best[i] /= std::sqrt(length[i]);
  return best;
}

} // namespace troupe::planner
