// SPDX-License-Identifier: BSD-3-Clause
// Values of bf16 and fp32 in vector instructions, with the bits of bf16.hpp.
#pragma once

#include <cstdint>
#include <cstring>

namespace troupe {

struct bf16; // defined in bf16.hpp

/// The vector types of `Count` adjacent values. gcc 12 accepts no vector size that
/// depends on a template parameter.
template <int Count>
struct vectors_of;

template <>
struct vectors_of<4> {
  typedef float floats __attribute__((vector_size(16)));
  typedef std::uint32_t words __attribute__((vector_size(16)));
  typedef std::int32_t numbers __attribute__((vector_size(16)));
  typedef std::uint16_t halves __attribute__((vector_size(8)));
};

template <>
struct vectors_of<8> {
  typedef float floats __attribute__((vector_size(32)));
  typedef std::uint32_t words __attribute__((vector_size(32)));
  typedef std::int32_t numbers __attribute__((vector_size(32)));
  typedef std::uint16_t halves __attribute__((vector_size(16)));
};

template <>
struct vectors_of<16> {
  typedef float floats __attribute__((vector_size(64)));
  typedef std::uint32_t words __attribute__((vector_size(64)));
  typedef std::int32_t numbers __attribute__((vector_size(64)));
  typedef std::uint16_t halves __attribute__((vector_size(32)));
};

template <int Count>
struct bf16_vector {
  using floats = typename vectors_of<Count>::floats;
  using words = typename vectors_of<Count>::words;
  using numbers = typename vectors_of<Count>::numbers;
  using halves = typename vectors_of<Count>::halves;

  static floats load(const float* from) {
    floats result;
    std::memcpy(&result, from, sizeof result);
    return result;
  }

  static floats widened(const bf16* from) {
    halves values;
    std::memcpy(&values, from, sizeof values);
    return (floats)(__builtin_convertvector(values, words) << 16U);
  }

  /// Rounds each value as rounded_to_bf16() does.
  static floats rounded(floats values) {
    constexpr std::uint32_t magnitude = 0x7fffffffU, quiet = 0x00400000U,
                            upper_half = 0xffff0000U;
    constexpr std::int32_t infinity = 0x7f800000, least_normal = 0x00800000;
    const words bits = (words)values;
    const numbers size = (numbers)(bits & magnitude);
    const words nearest = bits + 0x7fffU + ((bits >> 16U) & 1U);
    const words number = size < least_normal ? bits & ~magnitude : nearest;
    return (floats)((size > infinity ? bits | quiet : number) & upper_half);
  }

  /// \pre each value is exact in bf16
  static void store(bf16* to, floats values) {
    const halves upper = __builtin_convertvector((words)values >> 16U, halves);
    std::memcpy(to, &upper, sizeof upper);
  }

  static void store(float* to, floats values) {
    std::memcpy(to, &values, sizeof values);
  }
};

} // namespace troupe
