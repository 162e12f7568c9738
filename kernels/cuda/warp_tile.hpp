// SPDX-License-Identifier: BSD-3-Clause
// Products of tiles in shared memory, 16 rows per warp, inside a .cu. Sums are in
// registers in the layout of tensor cores, also where no tensor core computes. Lane
// 4 g + t has columns 2 t and 2 t + 1 of every 8, of rows g and g + 8.
#pragma once

#include "kernels/cuda/mma.hpp"
#include "kernels/cuda/stored.hpp"
#include "kernels/cuda/warp.hpp"

#include <type_traits>

namespace troupe::cuda {

/// Number of rows, and of columns, that a product processes together. Sizes of tiles
/// are multiples of `chunk`. Loops over a chunk are unrolled, so that loads from shared
/// memory overlap with products.
inline constexpr int chunk = 16;

__device__ inline int lane() {
  return static_cast<int>(threadIdx.x % warp_size);
}

/// Rows in shared memory, of fp32 or bf16_bits. The gap after each row makes rows begin
/// in different banks, so that eight rows can be read at the same time.
template <class Value, int Width>
struct tile {
  static constexpr int stride = Width + 16 / static_cast<int>(sizeof(Value));
  Value* data;

  __device__ Value* row(int r) const { return data + r * stride; }
  __device__ tile below(int rows) const { return {row(rows)}; }
  __device__ tile from_column(int c) const { return {data + c}; }
};

/// One lane's values of 16 rows of a warp, in registers.
template <int Columns>
struct strip {
  float values[Columns / 8][4];

  /// Row and column of value i of the four values in a block of 8 columns.
  __device__ static int row(int i) { return lane() / 4 + i / 2 * 8; }
  __device__ static int column(int block, int i) {
    return block * 8 + lane() % 4 * 2 + i % 2;
  }
};

enum class side { up_to_row, from_row };

/// A mask for a triangle: selects the columns of a step that 16 rows use. `diagonal` is
/// the index of the chunk of columns that begins with the column of the first row.
/// Values outside may be NaNs, and stay out of all sums.
template <side Side>
struct triangle {
  int diagonal;

  __device__ bool has(int c) const {
    return Side == side::up_to_row ? c <= diagonal : c >= diagonal;
  }

  /// True if some rows use a column of the chunk, and other rows do not.
  __device__ bool cuts(int c) const { return c == diagonal; }

  /// True if a row uses a column of chunk `c`. `row` counts from the first of the 16
  /// rows, `column` from the first column of the chunk.
  __device__ bool has(int c, int row, int column) const {
    if (!cuts(c))
      return has(c);
    return Side == side::up_to_row ? column <= row : column >= row;
  }
};

/// The mask of a step whose columns all rows use: nothing is tested.
struct all_columns {
  __device__ static constexpr bool has(int) { return true; }
  __device__ static constexpr bool cuts(int) { return false; }
  __device__ static constexpr bool has(int, int, int) { return true; }
};

/// 16 bytes of fp32, read by one instruction.
struct alignas(16) four {
  float values[4];
};

/// Reads the first two values of a row.
__device__ inline void read_pair(const float* row, float (&to)[2]) {
  to[0] = row[0];
  to[1] = row[1];
}

__device__ inline void read_pair(const bf16_bits* row, float (&to)[2]) {
  to[0] = fp32_of_bits(unsigned{row[0]} << 16);
  to[1] = fp32_of_bits(unsigned{row[1]} << 16);
}

/// sums += a b^T for 16 rows of a, and for the chunks of rows of b that `in` has.
template <int Columns, int Width, class Seen>
__device__ void multiply_by_rows(strip<Columns>& sums, const tile<float, Width>& a,
                                 const tile<float, Width>& b, const Seen& in) {
  const int g = lane() / 4, t = lane() % 4;
  const auto four_of = [](const tile<float, Width>& source, int row, int column) {
    return *reinterpret_cast<const four*>(source.row(row) + column);
  };
  for (int k = 0; k < Width; k += 4) {
    const four upper = four_of(a, g, k), lower = four_of(a, g + 8, k);
    TROUPE_UNROLL
    for (int block = 0; block < Columns / 8; ++block) {
      if (!in.has(block / 2))
        continue;
      const four even = four_of(b, 8 * block + 2 * t, k),
                 odd = four_of(b, 8 * block + 2 * t + 1, k);
      auto& to = sums.values[block];
      TROUPE_UNROLL
      for (int i = 0; i < 4; ++i) {
        to[0] += upper.values[i] * even.values[i];
        to[1] += upper.values[i] * odd.values[i];
        to[2] += lower.values[i] * even.values[i];
        to[3] += lower.values[i] * odd.values[i];
      }
    }
  }
}

template <int Columns, int Width, class Seen>
__device__ void multiply_by_rows(strip<Columns>& sums, const tile<bf16_bits, Width>& a,
                                 const tile<bf16_bits, Width>& b, const Seen& in) {
  const int l = lane();
  const bf16_bits *const a_row = a.row(l % 16) + l / 16 * 8, *const b_row =
                                                               b.row(l % 8 + l / 16 * 8)
                                                               + l / 8 % 2 * 8;
  TROUPE_UNROLL
  for (int k = 0; k < Width; k += chunk) {
    const auto rows = load_fragment(a_row + k);
    TROUPE_UNROLL
    for (int c = 0; c < Columns / chunk; ++c) {
      if (!in.has(c))
        continue;
      const auto columns = load_fragment(b_row + c * chunk * b.stride + k);
      multiply_add(sums.values[2 * c], rows, columns.words[0], columns.words[1]);
      multiply_add(sums.values[2 * c + 1], rows, columns.words[2], columns.words[3]);
    }
  }
}

/// sums += weights b, for chunk c of the weights' columns, value by value. Values
/// outside of the triangle are not multiplied.
template <class Value, int Columns, int Depth, int Width, class Seen>
__device__ void add_plainly(strip<Columns>& sums, const strip<Depth>& weights,
                            const tile<Value, Width>& b, int c, const Seen& in) {
  const int g = lane() / 4, t = lane() % 4;
  TROUPE_UNROLL
  for (int i = 0; i < 4; ++i) { // which of a lane's weights of a row
    const auto& row_weights = weights.values[2 * c + i / 2];
    for (int from = 0; from < 4; ++from) { // which lane has the weight
      const float upper = __shfl_sync(whole_warp, row_weights[i % 2], 4 * g + from),
                  lower = __shfl_sync(whole_warp, row_weights[2 + i % 2], 4 * g + from);
      const int k = i / 2 * 8 + 2 * from + i % 2;
      const bool above = in.has(c, g, k), below = in.has(c, g + 8, k);
      const auto* const row = b.row(c * chunk + k) + 2 * t;
      TROUPE_UNROLL
      for (int block = 0; block < Columns / 8; ++block) {
        float values[2];
        read_pair(row + 8 * block, values);
        auto& to = sums.values[block];
        to[0] = above ? to[0] + upper * values[0] : to[0];
        to[1] = above ? to[1] + upper * values[1] : to[1];
        to[2] = below ? to[2] + lower * values[0] : to[2];
        to[3] = below ? to[3] + lower * values[1] : to[3];
      }
    }
  }
}

/// sums += weights b, for the first `Columns` columns of b, and for the chunks of the
/// weights' columns that `in` has.
/// \pre weights that `in` does not have are 0
template <int Columns, int Depth, int Width, class Seen>
__device__ void multiply(strip<Columns>& sums, const strip<Depth>& weights,
                         const tile<float, Width>& b, const Seen& in) {
  TROUPE_UNROLL
  for (int c = 0; c < Depth / chunk; ++c)
    if (in.has(c))
      add_plainly(sums, weights, b, c, in);
}

/// Two neighbours of a row, rounded to bf16, as one word.
__device__ inline unsigned rounded(const float (&pair)[4], int first) {
  const __nv_bfloat162_raw packed = __floats2bfloat162_rn(pair[first], pair[first + 1]);
  return packed.x | (unsigned{packed.y} << 16);
}

/// True if both bf16 of a word are finite.
__device__ inline bool is_finite(unsigned word) {
  return (word & 0x7f80U) != 0x7f80U && (word & 0x7f800000U) != 0x7f800000U;
}

/// 16 x 16 values of b as right factors: two blocks of 8 columns.
template <int Width>
__device__ fragment right_side(const tile<bf16_bits, Width>& b, int row, int column) {
  const int l = lane();
  return load_transposed(b.row(row + l % 16) + column + l / 16 * 8);
}

template <int Columns, int Depth, int Width, class Seen>
__device__ void multiply(strip<Columns>& sums, const strip<Depth>& weights,
                         const tile<bf16_bits, Width>& b, const Seen& in) {
  TROUPE_UNROLL
  for (int c = 0; c < Depth / chunk; ++c) {
    if (!in.has(c))
      continue;
    if (in.cuts(c)) { // 0 times a NaN would be a NaN
      bool finite = true;
      for (int column = 0; column < Columns; column += chunk)
        for (const auto word : right_side(b, c * chunk, column).words)
          finite = finite && is_finite(word);
      if (__ballot_sync(whole_warp, finite) != whole_warp) {
        add_plainly(sums, weights, b, c, in);
        continue;
      }
    }
    const auto &left = weights.values[2 * c], &right = weights.values[2 * c + 1];
    const fragment rows{
      {rounded(left, 0), rounded(left, 2), rounded(right, 0), rounded(right, 2)}};
    TROUPE_UNROLL
    for (int n = 0; n < Columns / chunk; ++n) {
      const auto side = right_side(b, c * chunk, n * chunk);
      multiply_add(sums.values[2 * n], rows, side.words[0], side.words[1]);
      multiply_add(sums.values[2 * n + 1], rows, side.words[2], side.words[3]);
    }
  }
}

} // namespace troupe::cuda
