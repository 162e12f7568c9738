// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "kernels/precision.hpp"

#include <bit>
#include <cstdint>

namespace troupe {

/// The upper half of an fp32: 8 bits of exponent, 7 of mantissa.
struct bf16 {
  std::uint16_t bits;
};

/// Rounds to nearest, ties to even; what is too small for a normal fp32 becomes 0 of
/// its sign, as the instructions for bf16 have it; a NaN stays one.
constexpr std::uint16_t bf16_of(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const auto exponent = bits & 0x7f800000U;
  if (exponent == 0x7f800000U && (bits & 0x007fffffU) != 0)
    return static_cast<std::uint16_t>((bits >> 16) | 0x40U);
  if (exponent == 0)
    return static_cast<std::uint16_t>((bits >> 16) & 0x8000U);
  return static_cast<std::uint16_t>((bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16);
}

constexpr float fp32_of(std::uint16_t value) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(value) << 16);
}

// Rows of n values, by vector instructions where there are.
void round_row(const float* from, std::int64_t n, bf16* to);
void widen_row(const bf16* from, std::int64_t n, float* to);

} // namespace troupe
