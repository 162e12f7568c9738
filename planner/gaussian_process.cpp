// SPDX-License-Identifier: BSD-3-Clause
#include "planner/gaussian_process.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <numbers>
#include <numeric>
#include <utility>

namespace troupe::planner {

namespace {

constexpr double scales[] = {0.2, 0.35, 0.5, 0.7, 1, 1.5, 2.5};
constexpr double noises[] = {1e-4, 1e-2}; // variance, of the amplitude

double dot(const std::vector<double>& a, const std::vector<double>& b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.);
}

} // namespace

gaussian_process::gaussian_process(dense_matrix points,
                                   const std::vector<double>& values)
  : points_(std::move(points)), likelihood_(-std::numeric_limits<double>::infinity()) {
  const auto count = static_cast<double>(values.size());
  mean_ = std::reduce(values.begin(), values.end(), 0.) / count;
  double squares = 0;
  for (const double value : values)
    squares += (value - mean_) * (value - mean_);
  unit_ = squares > 0 ? std::sqrt(squares / count) : 1;
  std::vector<double> scaled;
  for (const double value : values)
    scaled.push_back((value - mean_) / unit_);
  for (const double scale : scales)
    for (const double noise : noises)
      fit(scale, noise, scaled);
}

double gaussian_process::covariance(const std::vector<double>& a,
                                    const std::vector<double>& b, double scale) const {
  double squares = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    squares += (a[i] - b[i]) * (a[i] - b[i]);
  const double r = std::sqrt(5 * squares) / scale;
  return (1 + r + r * r / 3) * std::exp(-r);
}

// Keeps scale and noise if the marginal likelihood is above that of earlier ones.
bool gaussian_process::fit(double scale, double noise,
                           const std::vector<double>& values) {
  const std::size_t n = points_.size();
  dense_matrix covariances(n, std::vector<double>(n));
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = 0; j <= i; ++j)
      covariances[i][j] =
        covariance(points_[i], points_[j], scale) + (i == j ? noise : 0);
  auto lower = cholesky(covariances);
  if (!lower)
    return false;
  auto half = solve_lower(*lower, values);
  const double amplitude =
    std::max(dot(half, half) / static_cast<double>(n), 1e-12); // the likeliest
  double likelihood = -0.5 * static_cast<double>(n) * std::log(amplitude);
  for (std::size_t i = 0; i < n; ++i)
    likelihood -= std::log((*lower)[i][i]);
  if (likelihood <= likelihood_)
    return false;
  likelihood_ = likelihood;
  scale_ = scale;
  amplitude_ = amplitude;
  weights_ = solve_lower_transposed(*lower, std::move(half));
  lower_ = std::move(*lower);
  return true;
}

estimate gaussian_process::at(const std::vector<double>& point) const {
  std::vector<double> covariances;
  for (const auto& known : points_)
    covariances.push_back(covariance(point, known, scale_));
  const auto half = solve_lower(lower_, covariances);
  const double variance = std::max(1 - dot(half, half), 1e-12) * amplitude_;
  return {mean_ + unit_ * dot(covariances, weights_), unit_ * std::sqrt(variance)};
}

double expected_improvement(const estimate& value, double lowest) {
  const double gain = lowest - value.mean;
  const double z = gain / value.deviation;
  const double below = 0.5 * std::erfc(-z / std::numbers::sqrt2);
  const double density = std::exp(-z * z / 2) / std::sqrt(2 * std::numbers::pi);
  return gain * below + value.deviation * density;
}

} // namespace troupe::planner
