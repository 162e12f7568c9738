// SPDX-License-Identifier: BSD-3-Clause
// Loads and stores of attention's kernels for one head, inside a .cu.
#pragma once

#include "kernels/attention.hpp"
#include "kernels/cuda/async_copy.hpp"
#include "kernels/cuda/warp_tile.hpp"

#include <cmath>
#include <cstdint>
#include <stdexcept>
#include <type_traits>

namespace troupe::cuda {

/// Tiles of a kernel for heads of up to Width columns, as large as 99 KB of shared
/// memory allow. Each warp has 16 of the block's rows, and loops over rows of other
/// matrices in steps. Two steps are in shared memory at the same time.
template <class Value, int Width, int Warps>
struct attention_tiles {
  static constexpr int row_bytes = Width * static_cast<int>(sizeof(Value));
  static constexpr int threads = Warps * warp_size;
  /// Blocks of the backward per multiprocessor; more blocks would spill registers.
  static constexpr int backward_blocks = row_bytes == 128 ? 3 : 2;
  static constexpr int rows = Warps * chunk;
  /// Blocks of the forward per multiprocessor, which limit the registers of a thread.
  /// In bf16, ptxas spills registers under a lower limit.
  static constexpr int forward_blocks = sizeof(Value) == 2 ? 2 : 1;
  static constexpr int forward_step = row_bytes <= 256   ? 64
                                      : row_bytes <= 512 ? 32
                                                         : 16;
  static constexpr int backward_step = row_bytes <= 64    ? 64
                                       : row_bytes <= 128 ? 32
                                                          : 16;

  /// Bytes of shared memory of `count` rows.
  static constexpr std::int64_t room(int count) {
    return std::int64_t{count} * tile<Value, Width>::stride
           * static_cast<std::int64_t>(sizeof(Value));
  }
};

inline constexpr std::int64_t most_room = 99 * 1024; // of compute capability 8.6

template <class Value, int Width>
using forward_tiles =
  attention_tiles<Value, Width, Width * sizeof(Value) <= 512 ? 4 : 2>;

/// A block of the backward has rows of two matrices, and so at most as many rows as a
/// block of the forward.
template <class Value, int Width>
using backward_tiles = attention_tiles<Value, Width,
                                       Width * sizeof(Value) <= 256   ? 4
                                       : Width * sizeof(Value) <= 512 ? 2
                                                                      : 1>;

/// A matrix whose rows are tokens.
struct token_matrix {
  stored storage;
  bool is_wide; ///< True if the matrix is_wide(), and heads are of whole packs.
};

template <class Scalar>
token_matrix token_matrix_of(const attention_shape& dims,
                             const stored_matrix<Scalar>& m) {
  return {stored_of(m), is_wide(m) && dims.width / dims.heads % pack == 0};
}

/// The columns of a head, for the tokens of one sequence.
struct head_columns {
  token_matrix from;
  std::int64_t first_row; ///< First row of the sequence.
  /// Rows from one token to the next, first column of the head, number of columns of
  /// the head, and number of tokens of the sequence.
  int apart, first_column, width, length;

  /// \param slice index in (B, H)
  /// \param part index of the C columns: 0 for queries, 1 for keys, 2 for values
  __device__ head_columns(const token_matrix& tokens, const attention_shape& dims,
                          std::int64_t slice, int part)
    : from(tokens),
      width(static_cast<int>(dims.width / dims.heads)),
      length(static_cast<int>(dims.length)) {
    const auto slice_index = static_cast<unsigned>(slice),
               heads = static_cast<unsigned>(dims.heads);
    const std::int64_t sequence = slice_index / heads;
    const int head = static_cast<int>(slice_index % heads);
    first_row = dims.by_position ? sequence : sequence * dims.length;
    apart = dims.by_position ? static_cast<int>(dims.sequences) : 1;
    first_column = part * static_cast<int>(dims.width) + head * width;
  }

  __device__ std::int64_t row(int token) const {
    return first_row + std::int64_t{token} * apart;
  }

  /// Starts to load tokens from `first` on as Rows rows of a tile, with 0 after the
  /// last token and the last column. Called by all threads of the block. The load ends
  /// after wait_for_copies() and a barrier.
  template <int Rows, int Threads, class Value, int Width>
  __device__ void begin_load(const tile<Value, Width>& to, int first) const {
    constexpr bool of_bf16 = std::is_same_v<Value, bf16_bits>;
    if (from.is_wide && from.storage.is_bf16 == of_bf16)
      begin_packs<Rows, Threads>(to, first);
    else
      for (int i = static_cast<int>(threadIdx.x); i < Rows * Width; i += Threads)
        load_one(to.row(i / Width) + i % Width, first + i / Width, i % Width);
  }

  /// Stores two neighbours, from `column` of the head on, except values beyond the last
  /// column.
  /// \pre `token` is a token of the sequence, and `column` is even
  __device__ void store(int token, int column, const float (&pair)[2]) const {
    const auto offset = row(token) * from.storage.stride + first_column + column;
    if (!from.is_wide) {
      for (int i = 0; i < 2; ++i)
        if (column + i < width)
          from.storage.store(row(token), first_column + column + i, {pair[i]});
    } else if (column < width && from.storage.is_bf16) {
      static_cast<unsigned*>(from.storage.data)[offset / 2] =
        bits_of_bf16(pair[0]) | (unsigned{bits_of_bf16(pair[1])} << 16);
    } else if (column < width) {
      reinterpret_cast<two*>(from.storage.data)[offset / 2] = {{pair[0], pair[1]}};
    }
  }

  /// Stores the rows of a warp, from token `first` and from to_column on, except rows
  /// beyond the last token. Each of a lane's two rows is multiplied by one of
  /// `factors`.
  template <int Columns>
  __device__ void store(const strip<Columns>& sums, int first, int to_column,
                        const float (&factors)[2]) const {
    TROUPE_UNROLL
    for (int half = 0; half < 2; ++half) {
      const int token = first + sums.row(2 * half);
      TROUPE_UNROLL
      for (int block = 0; block < Columns / 8; ++block) {
        const auto& values = sums.values[block];
        if (token < length)
          store(
            token, to_column + sums.column(block, 0),
            {values[2 * half] * factors[half], values[2 * half + 1] * factors[half]});
      }
    }
  }

private:
  struct alignas(8) two {
    float values[2];
  };

  /// Each thread copies packs of 16 bytes. `at_once` is the number of rows that the
  /// block copies at the same time.
  template <int Rows, int Threads, class Value, int Width>
  __device__ void begin_packs(const tile<Value, Width>& to, int first) const {
    constexpr int n = 16 / static_cast<int>(sizeof(Value)), packs = Width / n,
                  across = packs < Threads ? packs : Threads,
                  at_once = Threads / across;
    static_assert(packs % across == 0 && Threads % across == 0 && Rows % at_once == 0);
    const int r = static_cast<int>(threadIdx.x) / across,
              column = static_cast<int>(threadIdx.x) % across * n;
    const auto* const source = static_cast<const Value*>(from.storage.data)
                               + row(first + r) * from.storage.stride + first_column
                               + column;
    const auto apart_here = at_once * apart * from.storage.stride;
    TROUPE_UNROLL
    for (int i = 0; i < Rows / at_once; ++i)
      for (int c = 0; c < Width; c += across * n)
        begin_copy<16>(to.row(r + i * at_once) + column + c,
                       source + i * apart_here + c,
                       first + r + i * at_once < length && column + c < width);
  }

  __device__ void load_one(float* to, int token, int column) const {
    float value[1] = {};
    if (token < length && column < width)
      from.storage.load(row(token), first_column + column, value);
    *to = value[0];
  }

  __device__ void load_one(bf16_bits* to, int token, int column) const {
    *to = token < length && column < width ? static_cast<const bf16_bits*>(
            from.storage.data)[row(token) * from.storage.stride + first_column + column]
                                           : bf16_bits{0};
  }
};

/// Rows of two matrices of a head, which a block reads in steps. While one step is
/// multiplied, the next step is loaded into the other half of the tiles.
template <class Value, int Width, int Step, int Threads>
struct steps_of_rows {
  static constexpr int rows = 4 * Step; ///< Number of rows in `tiles`.
  tile<Value, Width> tiles;
  head_columns first, second;

  /// Returns the tile for the rows of the first matrix in a step.
  /// \param token the first token of the step
  __device__ tile<Value, Width> first_at(int token) const {
    return tiles.below(token / Step % 2 * 2 * Step);
  }
  __device__ tile<Value, Width> second_at(int token) const {
    return first_at(token).below(Step);
  }

  /// Starts to load the step that begins at `token`. Called by all threads of the
  /// block.
  /// \pre all threads have ended the step that comes two steps before `token`
  __device__ void begin_load(int token) const {
    first.template begin_load<Step, Threads>(first_at(token), token);
    second.template begin_load<Step, Threads>(second_at(token), token);
  }
};

/// Calls use(token) with the first token of each step. Called by all threads of a
/// block. The barrier before each call completes the loads of the step. The barrier
/// also ends all use of the previous step, whose memory the next load overwrites.
template <int Step, class Load, class Use>
__device__ void go_in_steps(int begin, int end, const Load& begin_load,
                            const Use& use) {
  begin_load(begin);
  for (int token = begin; token < end; token += Step) {
    wait_for_copies();
    __syncthreads();
    if (token + Step < end)
      begin_load(token + Step);
    use(token);
  }
}

/// Calls add(key, seen) for each step of keys that a warp's rows from `first` on see,
/// up to `end`. `key` is the first key of the step, and `seen` selects the keys that
/// rows see. Called by all threads of a block, as go_in_steps() has barriers.
template <class Value, int Width, int Step, int Threads, class Add>
__device__ void go_through_keys(const steps_of_rows<Value, Width, Step, Threads>& keys,
                                int first, int end, const Add& add) {
  go_in_steps<Step>(
    0, end, [&](int key) { keys.begin_load(key); },
    [&](int key) {
      if (key + Step <= first)
        add(key, all_columns{});
      else if (key <= first)
        add(key, triangle<side::up_to_row>{(first - key) / chunk});
    });
}

inline constexpr float log2_of_e = 1.44269504088896340736F;

__device__ inline float scale_of_scores(int width) {
  return 1 / sqrtf(static_cast<float>(width));
}

/// The position of this block in a launch: an index in (B, H), and the first token of a
/// tile.
struct block_of_head {
  std::int64_t slice;
  int first; ///< First token.

  /// With `last_first`, the last tile of tokens comes first; else the first tile.
  /// Callers start with the tiles that take the most steps.
  __device__ block_of_head(const attention_shape& dims, int rows, bool last_first) {
    const auto slices = static_cast<unsigned>(dims.sequences * dims.heads);
    const int turn = static_cast<int>(blockIdx.x / slices),
              tiles = (static_cast<int>(dims.length) + rows - 1) / rows;
    slice = blockIdx.x % slices;
    first = (last_first ? tiles - 1 - turn : turn) * rows;
  }
};

inline unsigned blocks_of_heads(const attention_shape& dims, int rows) {
  return static_cast<unsigned>(dims.sequences * dims.heads)
         * blocks_of(dims.length, rows);
}

/// Calls f with a value of the type that products have, bf16 or fp32, and with the
/// width of tiles for the heads.
/// \throws std::runtime_error if heads have more than 256 columns, or B H T is 2^31 or
/// more
template <class F>
void by_tile(const attention_shape& dims, bool by_bf16, const F& f) {
  const auto call_with = [&](auto width) {
    if (by_bf16)
      f(bf16_bits{}, width);
    else
      f(float{}, width);
  };
  constexpr std::int64_t most_rows = std::int64_t{1} << 31; // kernels count by 32 bits
  if (dims.sequences * dims.heads * dims.length >= most_rows)
    throw std::runtime_error{
      "a GPU's attention has fewer than 2^31 tokens of all heads"};
  const auto width = dims.width / dims.heads;
  if (width <= 16)
    call_with(std::integral_constant<int, 16>{});
  else if (width <= 32)
    call_with(std::integral_constant<int, 32>{});
  else if (width <= 64)
    call_with(std::integral_constant<int, 64>{});
  else if (width <= 128)
    call_with(std::integral_constant<int, 128>{});
  else if (width <= 256)
    call_with(std::integral_constant<int, 256>{});
  else
    throw std::runtime_error{"a GPU's attention has heads of at most 256 columns"};
}

} // namespace troupe::cuda
