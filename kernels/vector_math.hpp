// SPDX-License-Identifier: BSD-3-Clause
// Exponentials, GELU and maxima in loops that compilers vectorize.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <iterator>

namespace troupe {

/// e^(x - n ln 2), where n is x / ln 2 rounded to a whole number.
inline float exp_of_rest(float x, float n) {
  const float r = std::fma(n, -1.42860677e-6F, std::fma(n, -0.693145752F, x));
  float p = 1.98756915e-4F; // the minimax polynomial of Cephes, after (1 + r)
  p = std::fma(p, r, 1.39819995e-3F);
  p = std::fma(p, r, 8.33345190e-3F);
  p = std::fma(p, r, 4.16657962e-2F);
  p = std::fma(p, r, 1.66666655e-1F);
  p = std::fma(p, r, 5.00000012e-1F);
  return std::fma(p * r, r, r) + 1.0F;
}

/// e^x without branches or calls, so that loops over this function become vector
/// instructions. The error is at most 2 units in the last place. The result is 0 below
/// -87.3, and e^88 above 88.
inline float fast_exp(float x) {
  const float clamped = x < -87.3F ? -87.3F : (x > 88.0F ? 88.0F : x);
  const float n = std::nearbyint(clamped * 1.44269504F);
  const float p = exp_of_rest(clamped, n);
  // n, or the bits of a NaN, in the lowest bits: a NaN has no integer.
  const auto exponent = std::bit_cast<std::uint32_t>(n + 0x1.8p23F) + 127;
  const auto scale = std::bit_cast<float>(exponent << 23);
  return x < -87.3F ? 0.0F : p * scale;
}

inline double fast_exp(double x) {
  return std::exp(x);
}

/// The value and the derivative of GPT-2's GELU: x (1 + tanh(u)) / 2 = x / (1 +
/// e^(-2u)) where u = sqrt(2/pi) (x + 0.044715 x^3).
template <class Scalar>
struct gelu_result {
  Scalar value;
  Scalar slope; ///< The derivative.
};

/// GPT-2's GELU, x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))), and its derivative,
/// from one exponential. Hendrycks & Gimpel, "Gaussian Error Linear Units", 2016.
template <class Scalar>
gelu_result<Scalar> gelu_and_slope(Scalar x) {
  constexpr auto twice_root = static_cast<Scalar>(1.5957691216057308); // 2 sqrt(2/pi)
  constexpr auto cubic = static_cast<Scalar>(0.044715);
  constexpr auto thrice_cubic = static_cast<Scalar>(3 * 0.044715);
  const Scalar square = x * x;
  const Scalar gate = 1 / (1 + fast_exp(-(twice_root * x * (1 + cubic * square))));
  const Scalar inner = twice_root * x * (1 + thrice_cubic * square);
  return {x * gate, gate * (1 + inner * (1 - gate))};
}

/// The largest of n values; in 16 lanes, so that the loop becomes vector instructions.
/// NaNs are ignored, unless x[0] is a NaN: the result is then a NaN.
/// \pre n > 0
template <class Scalar>
Scalar largest(const Scalar* x, std::int64_t n) {
  Scalar each[16];
  std::fill(std::begin(each), std::end(each), x[0]);
  std::int64_t i = 0;
  for (; i + 16 <= n; i += 16)
    for (int lane = 0; lane < 16; ++lane)
      each[lane] = x[i + lane] > each[lane] ? x[i + lane] : each[lane];
  Scalar most = *std::max_element(std::begin(each), std::end(each));
  for (; i < n; ++i)
    most = std::max(most, x[i]);
  return most;
}

} // namespace troupe
