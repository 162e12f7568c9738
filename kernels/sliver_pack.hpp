// SPDX-License-Identifier: BSD-3-Clause
// Packs operands of a product into slivers (sliver_tiles.hpp), and rounds or widens the
// values on the way.
#pragma once

#include "kernels/bf16.hpp"
#include "kernels/bf16_vector.hpp"
#include "kernels/matrix.hpp"
#include "kernels/sliver_tiles.hpp"
#include "kernels/vector.hpp"

#include <algorithm>
#include <bit>

namespace troupe {

// The ways to read values for packing: exact, rounded to bf16, or widened from bf16.
// read() returns `Count` adjacent values as fp32.

struct exact_values {
  using stored = float;
  template <int Count>
  static auto read(const float* from) {
    return bf16_vector<Count>::load(from);
  }
  static float read_one(float from) { return from; }
};

struct rounded_values {
  using stored = float;
  template <int Count>
  static auto read(const float* from) {
    using values = bf16_vector<Count>;
    return values::rounded(values::load(from));
  }
  static float read_one(float from) { return rounded_to_bf16(from); }
};

struct widened_values {
  using stored = bf16;
  template <int Count>
  static auto read(const bf16* from) {
    return bf16_vector<Count>::widened(from);
  }
  static float read_one(bf16 from) { return fp32_of(from.bits); }
};

inline void write_one(float* to, float value) {
  *to = value;
}

/// Writes a value as bf16.
/// \pre the value is exact in bf16
inline void write_one(bf16* to, float value) {
  to->bits = static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(value) >> 16U);
}

/// Packs a row of `Width` values, in vectors of which the last two may overlap.
template <int Width, class Values, class Out>
void pack_row(const typename Values::stored* from, Out* to) {
  constexpr int piece = std::bit_floor(static_cast<unsigned>(std::min(Width, lanes)));
  const auto pack_piece = [&](int i) {
    bf16_vector<piece>::store(to + i, Values::template read<piece>(from + i));
  };
#pragma GCC unroll 16
  for (int i = 0; i + piece <= Width; i += piece)
    pack_piece(i);
  if constexpr (Width % piece != 0)
    pack_piece(Width - piece);
}

/// Copies `lines` lines of `length` values, `stride` values apart, into the columns of
/// `to`, whose rows have `width` values. May write up to a vector's length past the
/// last row.
template <class Values, class Out>
void pack_columns(const typename Values::stored* from, std::int64_t stride, int lines,
                  std::int64_t length, Out* to, int width) {
  for (int first = 0; first < lines; first += lanes) {
    const int count = std::min(lanes, lines - first);
    std::int64_t i = 0;
    for (; i + lanes <= length; i += lanes) {
      vector block[lanes];
#pragma GCC unroll 16
      for (int line = 0; line < lanes; ++line)
        block[line] =
          line < count
            ? Values::template read<lanes>(from + (first + line) * stride + i)
            : vector{};
      transpose(block);
#pragma GCC unroll 16
      for (int k = 0; k < lanes; ++k) {
        auto* const row = to + (i + k) * width + first;
        if (first == 0 || first + lanes <= width)
          bf16_vector<lanes>::store(row, block[k]);
        else // the next row has its first values
          for (int line = 0; line < count; ++line)
            write_one(row + line, block[k][line]);
      }
    }
    for (; i < length; ++i)
      for (int line = 0; line < count; ++line)
        write_one(to + i * width + first + line,
                  Values::read_one(from[(first + line) * stride + i]));
  }
}

/// Packs lines of m, a (depth, lines) matrix as read: the transposed left side, or the
/// right side, of a product. Each sliver becomes `depth` rows of Width values. In
/// slivers of the right side, values after the last line are 0. A left side may write
/// up to a vector's length past the last sliver.
/// \param line,lines the first line to pack, and the number of lines
/// \param first,depth the first index of the depth, and the number of indices
template <int Width, class Values, class Out>
void pack_slivers(matrix<const typename Values::stored> m, std::int64_t line,
                  std::int64_t lines, std::int64_t first, std::int64_t depth, Out* to) {
  const auto width_at = [&](std::int64_t i) {
    return static_cast<int>(std::min<std::int64_t>(Width, lines - i));
  };
  const auto whole = lines / Width * Width;
  if (Width == columns_a_tile && whole < lines)
    std::fill_n(to + whole * depth, depth * Width, Out{});
  if (m.transposed) {
    for (std::int64_t i = 0; i < lines; i += Width)
      pack_columns<Values>(m.data + (line + i) * m.stride + first, m.stride,
                           width_at(i), depth, to + i * depth, Width);
    return;
  }
  // A few rows of all slivers at a time, because memory is read faster along rows.
  constexpr std::int64_t rows_at_once = 16;
  for (std::int64_t begin = 0; begin < depth; begin += rows_at_once)
    for (std::int64_t i = 0; i < lines; i += Width) {
      const auto* from = m.data + first * m.stride + line + i;
      const auto end = std::min(begin + rows_at_once, depth);
      auto* const sliver = to + i * depth;
      if (width_at(i) == Width)
        for (auto k = begin; k < end; ++k)
          pack_row<Width, Values>(from + k * m.stride, sliver + k * Width);
      else
        for (auto k = begin; k < end; ++k)
          for (int n = 0; n < width_at(i); ++n)
            write_one(sliver + k * Width + n, Values::read_one(from[k * m.stride + n]));
    }
}

} // namespace troupe
