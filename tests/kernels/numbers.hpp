// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

/// `n` normal values; a seed gives the same values in float and in double.
template <class Scalar>
std::vector<Scalar> random_values(std::int64_t n, unsigned seed) {
  std::mt19937 engine{seed};
  std::normal_distribution<float> normal;
  std::vector<Scalar> result(static_cast<std::size_t>(n));
  for (auto& x : result)
    x = static_cast<Scalar>(normal(engine));
  return result;
}

inline std::vector<std::int32_t> random_labels(std::int64_t n, int below,
                                               unsigned seed) {
  std::mt19937 engine{seed};
  std::uniform_int_distribution<std::int32_t> uniform{0, below - 1};
  std::vector<std::int32_t> result(static_cast<std::size_t>(n));
  for (auto& x : result)
    x = uniform(engine);
  return result;
}

/// The norm of the difference, divided by the norm.
template <class A, class B>
double relative_difference(const std::vector<A>& a, const std::vector<B>& b) {
  double difference = 0, norm = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double x = static_cast<double>(a[i]), y = static_cast<double>(b.at(i));
    difference += (x - y) * (x - y);
    norm += y * y;
  }
  return norm > 0 ? std::sqrt(difference / norm) : std::sqrt(difference);
}

template <class Scalar>
double dot(const std::vector<Scalar>& a, const std::vector<Scalar>& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    sum += static_cast<double>(a[i]) * static_cast<double>(b.at(i));
  return sum;
}

/// The gradient of f at x by central differences.
template <class F>
std::vector<double> finite_differences(const F& f, std::vector<double> x) {
  constexpr double h = 1e-6;
  std::vector<double> result;
  for (auto& xi : x) {
    const double saved = xi;
    xi = saved + h;
    const double above = f(x);
    xi = saved - h;
    const double below = f(x);
    xi = saved;
    result.push_back((above - below) / (2 * h));
  }
  return result;
}
