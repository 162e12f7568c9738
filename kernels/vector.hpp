// SPDX-License-Identifier: BSD-3-Clause
// Vectors of floats as wide as one instruction: loads, stores, and the transposition of
// a block.
#pragma once

#include <cstddef>
#include <cstring>
#include <utility>

namespace troupe {

/// Number of floats that one vector instruction of the compiler's target machine takes.
#if defined(__AVX512F__)
inline constexpr int lanes = 16;
#elif defined(__AVX__)
inline constexpr int lanes = 8;
#else
inline constexpr int lanes = 4;
#endif

typedef float vector __attribute__((vector_size(lanes * sizeof(float))));

/// Loads a vector from an address of any alignment.
inline vector load(const float* from) {
  vector result;
  std::memcpy(&result, from, sizeof result);
  return result;
}

inline void store(float* to, vector values) {
  std::memcpy(to, &values, sizeof values);
}

namespace detail {

// One round of a transposition cuts the rows into squares, `Piece` values wide. In each
// block of 2 x 2 squares, the two squares off the diagonal are exchanged.
template <int Piece, int... Lane>
void swap_pieces(vector& upper, vector& lower, std::integer_sequence<int, Lane...>) {
  const vector left = __builtin_shufflevector(
    upper, lower, ((Lane & Piece) != 0 ? lanes + Lane - Piece : Lane)...);
  lower = __builtin_shufflevector(
    upper, lower, ((Lane & Piece) != 0 ? lanes + Lane : Lane + Piece)...);
  upper = left;
}

} // namespace detail

/// Transposes a square block in place.
template <int Piece = 1>
[[gnu::always_inline]] inline void transpose(vector (&rows)[lanes]) {
  if constexpr (Piece < lanes) {
#pragma GCC unroll 16
    for (int r = 0; r < lanes; ++r)
      if ((r & Piece) == 0)
        detail::swap_pieces<Piece>(rows[r], rows[r | Piece],
                                   std::make_integer_sequence<int, lanes>{});
    transpose<2 * Piece>(rows);
  }
}

} // namespace troupe
