// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/bf16_pack.hpp"

#include "kernels/bf16.hpp"
#include "kernels/bf16_block.hpp"
#include "kernels/vector.hpp"

#include <algorithm>
#include <cstring>

#ifdef __AVX512BF16__
#include <immintrin.h>
#endif

namespace troupe {

template <bool OfA, class Value>
void pack_tile_plainly(const tile_source<Value>& s, std::uint16_t* to) {
  for (int line = 0; line < tile_side; ++line)
    for (int index = 0; index < step_depth; ++index) {
      const auto value = s.at(line, index);
      if (OfA)
        to[line * step_depth + index] = value;
      else
        to[index / 2 * step_depth + 2 * line + index % 2] = value;
    }
}

#ifdef __AVX512BF16__

namespace {

__mmask16 first(int count) {
  return static_cast<__mmask16>((1U << static_cast<unsigned>(std::clamp(count, 0, 16)))
                                - 1U);
}

/// `count` values of bf16, rounded from fp32 if necessary, followed by zeros.
__m256i halves(const float* from, int count) {
  return (__m256i)_mm512_cvtneps_pbh(_mm512_maskz_loadu_ps(first(count), from));
}

__m256i halves(const bf16* from, int count) {
  return _mm256_maskz_loadu_epi16(first(count), from);
}

__m512i side_by_side(__m256i left, __m256i right) {
  return _mm512_inserti64x4(_mm512_castsi256_si512(left), right, 1);
}

/// A line of 32 values of bf16: `count` values, rounded from fp32 if necessary, then
/// zeros.
__m512i line_of(const float* from, int count) {
  return (__m512i)_mm512_cvtne2ps_pbh(
    _mm512_maskz_loadu_ps(first(count - lanes), from + lanes),
    _mm512_maskz_loadu_ps(first(count), from));
}

__m512i line_of(const bf16* from, int count) {
  return side_by_side(halves(from, count), halves(from + lanes, count - lanes));
}

/// Pairs of values in 16 vectors. Each vector holds either the pairs of one line along
/// the depth, or one pair of depth indices of all lines.
struct pairs {
  vector rows[lanes];

  template <class Value>
  explicit pairs(const tile_source<Value>& s) {
    if (s.by_depth)
      read_lines(s);
    else
      read_places(s);
  }

  template <class Value>
  void read_lines(const tile_source<Value>& s) {
#pragma GCC unroll 16
    for (int line = 0; line < lanes; ++line)
      set(line, line_of(s.from + line * s.stride, line < s.lines ? s.depth : 0));
  }

  template <class Value>
  void read_places(const tile_source<Value>& s) {
    alignas(64) static constexpr std::uint16_t in_turn[32] = {
      0, 16, 1, 17, 2,  18, 3,  19, 4,  20, 5,  21, 6,  22, 7,  23,
      8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31};
    const auto order = _mm512_load_si512(in_turn);
#pragma GCC unroll 16
    for (int pair = 0; pair < lanes; ++pair) {
      const auto* const from = s.from + 2 * pair * s.stride;
      const auto both =
        side_by_side(halves(from, 2 * pair < s.depth ? s.lines : 0),
                     halves(from + s.stride, 2 * pair + 1 < s.depth ? s.lines : 0));
      set(pair, _mm512_permutexvar_epi16(order, both));
    }
  }

  void set(int row, __m512i values) {
    std::memcpy(&rows[row], &values, sizeof values);
  }
};

} // namespace

template <bool OfA, class Value>
void pack_tile(const tile_source<Value>& s, std::uint16_t* to) {
  pairs packed{s};
  if (s.by_depth != OfA)
    transpose(packed.rows);
#pragma GCC unroll 16
  for (int row = 0; row < lanes; ++row)
    std::memcpy(to + row * step_depth, &packed.rows[row], sizeof(vector));
}

#else

template <bool OfA, class Value>
void pack_tile(const tile_source<Value>& s, std::uint16_t* to) {
  pack_tile_plainly<OfA, Value>(s, to);
}

#endif

template void pack_tile<true>(const tile_source<float>&, std::uint16_t*);
template void pack_tile<false>(const tile_source<float>&, std::uint16_t*);
template void pack_tile<true>(const tile_source<bf16>&, std::uint16_t*);
template void pack_tile<false>(const tile_source<bf16>&, std::uint16_t*);
template void pack_tile_plainly<true>(const tile_source<float>&, std::uint16_t*);
template void pack_tile_plainly<false>(const tile_source<float>&, std::uint16_t*);
template void pack_tile_plainly<true>(const tile_source<bf16>&, std::uint16_t*);
template void pack_tile_plainly<false>(const tile_source<bf16>&, std::uint16_t*);

} // namespace troupe
