// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "kernels/bf16.hpp"
#include "tests/dice.hpp"
#include "tests/kernels/numbers.hpp"

#include <bit>
#include <cstdint>
#include <tuple>
#include <vector>

namespace troupe {

/// A float with random bits: every exponent is equally likely.
inline float any_float(dice& random) {
  const auto bits = (static_cast<std::uint32_t>(random.number(0, 0xffff)) << 16U)
                    | static_cast<std::uint32_t>(random.number(0, 0xffff));
  return std::bit_cast<float>(bits);
}

/// Rows, columns and depths: below a block's, between, and beyond the sizes that are
/// packed at once.
inline const std::vector<std::tuple<int, int, int>> sizes{
  {1, 1, 1},     {3, 5, 7},     {33, 31, 65}, {64, 17, 33}, {3, 6, 4200},
#ifdef TROUPE_SANITIZED
  {5, 1030, 40}, {270, 8, 520},
#else
  {40, 200, 128}, {300, 90, 513}, {31, 1100, 600}, {260, 6, 4200},
#endif
};

inline std::vector<bf16> stored(const std::vector<float>& values) {
  std::vector<bf16> result;
  for (const float x : values)
    result.push_back({bf16_of(x)});
  return result;
}

inline std::vector<std::uint16_t> bits_of(const std::vector<bf16>& values) {
  std::vector<std::uint16_t> result;
  for (const auto x : values)
    result.push_back(x.bits);
  return result;
}

inline std::vector<float> rounded(std::vector<float> values) {
  for (auto& x : values)
    x = fp32_of(bf16_of(x));
  return values;
}

} // namespace troupe
