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

/// Rounds to the nearest bf16, ties to even, and returns the result as fp32. A value
/// too small for a normal fp32 becomes 0 of the same sign, as in AVX-512's instructions
/// for bf16. A NaN stays a NaN. Free of branches, so that compilers vectorize loops
/// over this function.
constexpr float rounded_to_bf16(float value) {
  constexpr std::uint32_t sign = 0x80000000U, infinity = 0x7f800000U,
                          least_normal = 0x00800000U, quiet = 0x00400000U;
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const auto size = bits & ~sign;
  const auto nearest = bits + 0x7fffU + ((bits >> 16U) & 1U);
  const auto number = size < least_normal ? bits & sign : nearest;
  return std::bit_cast<float>((size > infinity ? bits | quiet : number) & 0xffff0000U);
}

/// Rounds a value as rounded_to_bf16() does, and returns the bits of the bf16.
constexpr std::uint16_t bf16_of(float value) {
  return static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(rounded_to_bf16(value))
                                    >> 16U);
}

constexpr float fp32_of(std::uint16_t value) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(value) << 16);
}

// Convert n values, with vector instructions if available. round_row() rounds as
// rounded_to_bf16() does; widen_row() is exact.
void round_row(const float* from, std::int64_t n, bf16* to);
void widen_row(const bf16* from, std::int64_t n, float* to);

} // namespace troupe
