// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Regression by a Gaussian process: a mean and a deviation at each point from values at
// a few points. Rasmussen, Williams, "Gaussian Processes for Machine Learning", 2006,
// chapters 2 and 5.

#include "planner/least_squares.hpp"

#include <vector>

namespace troupe::planner {

/// Mean and standard deviation of a value.
struct estimate {
  double mean = 0;
  double deviation = 0;
};

/// A process with Matern's covariance of smoothness 5/2. Length scale and noise are
/// those of a small grid with the largest marginal likelihood; the amplitude follows.
class gaussian_process {
public:
  /// \param points coordinates, of equal number, scaled to about 1
  /// \param values one for each point
  /// \pre a point or more
  gaussian_process(dense_matrix points, const std::vector<double>& values);

  estimate at(const std::vector<double>& point) const;

private:
  bool fit(double scale, double noise, const std::vector<double>& values);
  double covariance(const std::vector<double>& a, const std::vector<double>& b,
                    double scale) const;

  dense_matrix points_, lower_;
  std::vector<double> weights_; // of the covariance with each point
  double mean_ = 0, unit_ = 1;  // of values
  double scale_ = 1, amplitude_ = 1, likelihood_ = 0;
};

/// Expected amount by which a value lies below `lowest`. Mockus, 1975; Jones, Schonlau,
/// Welch, "Efficient Global Optimization of Expensive Black-Box Functions", 1998,
/// equation 15.
double expected_improvement(const estimate& value, double lowest);

} // namespace troupe::planner
