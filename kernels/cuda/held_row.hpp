// SPDX-License-Identifier: BSD-3-Clause
// Rows of bf16 in the registers of a block, inside a .cu: memory is read once, however
// many sweeps over the values follow.
#pragma once

#include "kernels/cuda/stored.hpp"

#include <cmath>
#include <cstdint>

namespace troupe::cuda {

/// 2^x, by one instruction of a GPU. The relative error is at most 2^-22; results too
/// small for a normal fp32 become 0.
__device__ inline float power_of_two(float x) {
#ifdef __CUDA_ARCH__
  float result;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
  return result;
#else
  return exp2f(x);
#endif
}

/// Two values of bf16 in one word.
struct bf16_pair {
  unsigned bits;

  __device__ float low() const { return fp32_of_bits(bits << 16); }
  __device__ float high() const { return fp32_of_bits(bits & 0xffff0000U); }
};

/// Rounds two values as bits_of_bf16() does.
__device__ inline bf16_pair rounded_pair(float low, float high) {
  const __nv_bfloat162_raw raw = __floats2bfloat162_rn(low, high);
  return {raw.x | (unsigned{raw.y} << 16)};
}

/// The larger low and the larger high value. A NaN counts as less than any number.
__device__ inline bf16_pair larger_of_pairs(bf16_pair a, bf16_pair b) {
#ifdef __CUDA_ARCH__
  bf16_pair result;
  asm("max.bf16x2 %0, %1, %2;" : "=r"(result.bits) : "r"(a.bits), "r"(b.bits));
  return result;
#else
  return rounded_pair(fmaxf(a.low(), b.low()), fmaxf(a.high(), b.high()));
#endif
}

/// A row of which each thread of a block has every Threads-th pack, as stored. Places
/// behind the row's end hold -infinity.
/// \pre the matrix is bf16 and is_wide(), and rows have at most `longest` columns
template <int Threads, int Packs>
class held_row {
public:
  static constexpr int threads = Threads;
  static constexpr int longest = Threads * Packs * pack; ///< Columns of a row.

  __device__ held_row(const stored& source, std::int64_t row, int columns)
    : memory_(reinterpret_cast<sixteen_bytes*>(static_cast<bf16*>(source.data)
                                               + row * source.stride)
              + threadIdx.x),
      count_(columns / pack - static_cast<int>(threadIdx.x)) {
    TROUPE_UNROLL
    for (int i = 0; i < Packs; ++i)
      if (is_within(i))
        packs_[i] = memory_[i * Threads];
      else
        for (auto& word : packs_[i].words)
          word = 0xff80ff80U; // twice -infinity
  }

  /// Distance of a column from this thread's first column.
  __device__ static int distance_to(int column) {
    return column - static_cast<int>(threadIdx.x) * pack;
  }

  /// True if this thread has the column.
  __device__ static bool has(int column) {
    return column / pack % Threads == static_cast<int>(threadIdx.x);
  }

  /// The largest of this thread's values.
  __device__ float largest() const {
    bf16_pair most[4];
    for (int w = 0; w < 4; ++w)
      most[w] = {packs_[0].words[w]};
    TROUPE_UNROLL
    for (int i = 1; i < Packs; ++i) {
      TROUPE_UNROLL
      for (int w = 0; w < 4; ++w)
        most[w] = larger_of_pairs(most[w], {packs_[i].words[w]});
    }
    const auto pair = larger_of_pairs(larger_of_pairs(most[0], most[1]),
                                      larger_of_pairs(most[2], most[3]));
    return fmaxf(pair.low(), pair.high());
  }

  /// Calls f(value, distance) for each of this thread's values, places behind the row's
  /// end included. The distance is counted from the thread's first column.
  template <class F>
  __device__ void for_values(const F& f) const {
    TROUPE_UNROLL
    for (int i = 0; i < Packs; ++i) {
      TROUPE_UNROLL
      for (int w = 0; w < 4; ++w) {
        const bf16_pair pair{packs_[i].words[w]};
        f(pair.low(), i * Threads * pack + 2 * w);
        f(pair.high(), i * Threads * pack + 2 * w + 1);
      }
    }
  }

  /// Stores turn(x) in place of each of this thread's values x, rounded.
  template <class Turn>
  __device__ void store(const Turn& turn) const {
    TROUPE_UNROLL
    for (int i = 0; i < Packs; ++i)
      if (is_within(i)) {
        sixteen_bytes turned;
        TROUPE_UNROLL
        for (int w = 0; w < 4; ++w) {
          const bf16_pair pair{packs_[i].words[w]};
          turned.words[w] = rounded_pair(turn(pair.low()), turn(pair.high())).bits;
        }
        memory_[i * Threads] = turned;
      }
  }

private:
  __device__ bool is_within(int i) const { return i * Threads < count_; }

  sixteen_bytes* memory_; // this thread's first pack
  int count_;             // of the row's packs from there on
  sixteen_bytes packs_[Packs];
};

} // namespace troupe::cuda
