// What attention's kernels read and write of a head, inside a .cu.
#pragma once

#include "kernels/attention.hpp"
#include "kernels/cuda/warp_tile.hpp"

#include <cmath>
#include <cstdint>
#include <stdexcept>
#include <type_traits>

namespace troupe::cuda {

/// Tiles of a kernel for heads of up to Width columns: as large as 99 KB of shared
/// memory allow. Each warp has 16 of the block's rows, and goes through the others'
/// rows in steps.
template <class Value, int Width>
struct attention_tiles {
  static constexpr int row_bytes = Width * static_cast<int>(sizeof(Value));
  static constexpr int warps = row_bytes <= 512 ? 4 : 2;
  static constexpr int threads = warps * warp_size;
  /// The backward's, of a multiprocessor: with more, registers are spilled.
  static constexpr int backward_blocks = row_bytes <= 128 ? 3 : 2;
  static constexpr int rows = warps * chunk;
  static constexpr int forward_step = row_bytes <= 256   ? 64
                                      : row_bytes <= 512 ? 32
                                                         : 16;
  static constexpr int backward_step = row_bytes <= 128 ? 32 : 16;

  /// Bytes of so many rows.
  static constexpr std::int64_t room(int count) {
    return std::int64_t{count} * tile<Value, Width>::stride
           * static_cast<std::int64_t>(sizeof(Value));
  }
};

/// A matrix whose rows are tokens.
struct token_matrix {
  stored all;
  bool is_wide; ///< Its heads' columns can be cut into packs.
};

template <class Scalar>
token_matrix token_matrix_of(const attention_shape& dims,
                             const stored_matrix<Scalar>& m) {
  return {stored_of(m), is_wide(m) && dims.width / dims.heads % pack == 0};
}

/// Columns of a head, of the tokens of a sequence.
struct head_columns {
  token_matrix from;
  std::int64_t first_row, apart; ///< Of the sequence's tokens.
  std::int64_t first_column;
  int width, length;

  /// \param slice which of (B, H) \param part which of several C columns
  __device__ head_columns(const token_matrix& all, const attention_shape& dims,
                          std::int64_t slice, int part)
    : from(all),
      width(static_cast<int>(dims.width / dims.heads)),
      length(static_cast<int>(dims.length)) {
    const auto sequence = slice / dims.heads, head = slice % dims.heads;
    first_row = dims.by_position ? sequence : sequence * dims.length;
    apart = dims.by_position ? dims.sequences : 1;
    first_column = part * dims.width + head * width;
  }

  __device__ std::int64_t row(int token) const { return first_row + token * apart; }

  /// Tokens first.. as so many rows of a tile, 0 behind the last token and the last
  /// column. By all threads of the block, without a barrier.
  template <class Value, int Width>
  __device__ void load(const tile<Value, Width>& to, int rows, int first) const {
    const int columns = whole_chunks(width), n = from.is_wide ? pack : 1;
    for (int i = static_cast<int>(threadIdx.x) * n; i < rows * columns;
         i += static_cast<int>(blockDim.x) * n) {
      const int r = i / columns, c = i % columns, token = first + r;
      const bool is_there = token < length && c < width;
      if (from.is_wide)
        load_pack(to.row(r) + c, is_there, token, c);
      else
        load_one(to.row(r) + c, is_there, token, c);
    }
  }

  /// A pair of neighbours, unless they lie behind the last column.
  __device__ void store(int token, int column, const float (&pair)[2]) const {
    const auto at = row(token) * from.all.stride + first_column + column;
    if (!from.is_wide) {
      for (int i = 0; i < 2; ++i)
        if (column + i < width)
          from.all.store(row(token), first_column + column + i, {pair[i]});
    } else if (column < width && from.all.is_bf16) {
      static_cast<unsigned*>(from.all.data)[at / 2] =
        bits_of_bf16(pair[0]) | (unsigned{bits_of_bf16(pair[1])} << 16);
    } else if (column < width) {
      reinterpret_cast<two*>(from.all.data)[at / 2] = {{pair[0], pair[1]}};
    }
  }

  /// Rows of a warp as columns to_column.., times a factor for each of a lane's
  /// two.
  template <int Columns>
  __device__ void store(const strip<Columns>& sums, int first, int to_column,
                        const float (&factors)[2]) const {
    TROUPE_UNROLL
    for (int half = 0; half < 2; ++half) {
      const int token = first + sums.row(2 * half);
      TROUPE_UNROLL
      for (int block = 0; block < Columns / 8; ++block) {
        const auto& own = sums.values[block];
        if (token < length)
          store(token, to_column + sums.column(block, 0),
                {own[2 * half] * factors[half], own[2 * half + 1] * factors[half]});
      }
    }
  }

private:
  struct alignas(8) two {
    float values[2];
  };

  __device__ void load_pack(float* to, bool is_there, int token, int column) const {
    float values[pack] = {};
    if (is_there)
      from.all.load(row(token), first_column + column, values);
    const stored row_of_tile{to, 0, false};
    row_of_tile.store(0, 0, values);
  }

  __device__ void load_pack(bf16_bits* to, bool is_there, int token, int column) const {
    sixteen_bytes bits{};
    if (is_there)
      bits = *reinterpret_cast<const sixteen_bytes*>(
        static_cast<const bf16_bits*>(from.all.data) + row(token) * from.all.stride
        + first_column + column);
    *reinterpret_cast<sixteen_bytes*>(to) = bits;
  }

  __device__ void load_one(float* to, bool is_there, int token, int column) const {
    float value[1] = {};
    if (is_there)
      from.all.load(row(token), first_column + column, value);
    *to = value[0];
  }

  __device__ void load_one(bf16_bits* to, bool is_there, int token, int column) const {
    *to = is_there ? static_cast<const bf16_bits*>(
            from.all.data)[row(token) * from.all.stride + first_column + column]
                   : bf16_bits{0};
  }
};

inline constexpr float log2_of_e = 1.44269504088896340736F;

__device__ inline float scale_of_scores(const attention_shape& dims) {
  return 1 / sqrtf(static_cast<float>(dims.width / dims.heads));
}

/// Which of a launch's blocks this is: of (B, H), and of a head's tiles.
struct block_of_head {
  std::int64_t slice;
  int first; ///< Token.

  /// Blocks that go through most of the others' tiles come first.
  __device__ block_of_head(const attention_shape& dims, int rows, bool last_first) {
    const auto slices = dims.sequences * dims.heads,
               tiles = (dims.length + rows - 1) / rows;
    const auto turn = blockIdx.x / slices;
    slice = blockIdx.x % slices;
    first = static_cast<int>((last_first ? tiles - 1 - turn : turn) * rows);
  }
};

inline unsigned blocks_of_heads(const attention_shape& dims, int rows) {
  return static_cast<unsigned>(dims.sequences * dims.heads)
         * blocks_of(dims.length, rows);
}

/// Calls f with a value of the type that products have, bf16 or fp32, and the width of
/// tiles for these heads.
template <class F>
void by_tile(const attention_shape& dims, bool by_bf16, const F& f) {
  const auto with = [&](auto width) {
    if (by_bf16)
      f(bf16_bits{}, width);
    else
      f(float{}, width);
  };
  const auto width = dims.width / dims.heads;
  if (width <= 64)
    with(std::integral_constant<int, 64>{});
  else if (width <= 128)
    with(std::integral_constant<int, 128>{});
  else if (width <= 256)
    with(std::integral_constant<int, 256>{});
  else
    throw std::runtime_error{"a GPU's attention has heads of at most 256 columns"};
}

} // namespace troupe::cuda
