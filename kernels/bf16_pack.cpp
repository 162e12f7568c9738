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

template <bool OfA>
void pack_tile_plainly(const tile_source& s, std::uint16_t* to) {
  for (int line = 0; line < tile_side; ++line)
    for (int place = 0; place < step_depth; ++place) {
      const auto value = bf16_of(s.at(line, place));
      if (OfA)
        to[line * step_depth + place] = value;
      else
        to[place / 2 * step_depth + 2 * line + place % 2] = value;
    }
}

#ifdef __AVX512BF16__

namespace {

__mmask16 first(int count) {
  return static_cast<__mmask16>((1U << static_cast<unsigned>(std::clamp(count, 0, 16)))
                                - 1U);
}

/// Pairs of values: 16 vectors, either a line's pairs along the depth each, or a pair
/// of places of all lines each.
struct pairs {
  vector rows[lanes];

  explicit pairs(const tile_source& s) {
    if (s.by_depth)
      read_lines(s);
    else
      read_places(s);
  }

  void read_lines(const tile_source& s) {
    const auto left = first(s.depth), right = first(s.depth - lanes);
#pragma GCC unroll 16
    for (int line = 0; line < lanes; ++line) {
      const auto* const from = s.from + line * s.stride;
      const auto some = line < s.lines;
      set(line, _mm512_cvtne2ps_pbh(
                  _mm512_maskz_loadu_ps(some ? right : __mmask16{0}, from + lanes),
                  _mm512_maskz_loadu_ps(some ? left : __mmask16{0}, from)));
    }
  }

  void read_places(const tile_source& s) {
    alignas(64) static constexpr std::uint16_t side_by_side[32] = {
      0, 16, 1, 17, 2,  18, 3,  19, 4,  20, 5,  21, 6,  22, 7,  23,
      8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31};
    const auto order = _mm512_load_si512(side_by_side);
    const auto all = first(s.lines);
#pragma GCC unroll 16
    for (int pair = 0; pair < lanes; ++pair) {
      const auto* const from = s.from + 2 * pair * s.stride;
      const auto both = _mm512_cvtne2ps_pbh(
        _mm512_maskz_loadu_ps(2 * pair + 1 < s.depth ? all : __mmask16{0},
                              from + s.stride),
        _mm512_maskz_loadu_ps(2 * pair < s.depth ? all : __mmask16{0}, from));
      set(pair, (__m512bh)_mm512_permutexvar_epi16(order, (__m512i)both));
    }
  }

  void set(int row, __m512bh values) {
    std::memcpy(&rows[row], &values, sizeof values);
  }
};

} // namespace

template <bool OfA>
void pack_tile(const tile_source& s, std::uint16_t* to) {
  pairs all{s};
  if (s.by_depth != OfA)
    transpose(all.rows);
#pragma GCC unroll 16
  for (int row = 0; row < lanes; ++row)
    std::memcpy(to + row * step_depth, &all.rows[row], sizeof(vector));
}

#else

template <bool OfA>
void pack_tile(const tile_source& s, std::uint16_t* to) {
  pack_tile_plainly<OfA>(s, to);
}

#endif

template void pack_tile<true>(const tile_source&, std::uint16_t*);
template void pack_tile<false>(const tile_source&, std::uint16_t*);
template void pack_tile_plainly<true>(const tile_source&, std::uint16_t*);
template void pack_tile_plainly<false>(const tile_source&, std::uint16_t*);

} // namespace troupe
