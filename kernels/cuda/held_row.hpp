// SPDX-License-Identifier: BSD-3-Clause
// Rows in the registers of a block, inside a .cu: memory is read once, however many
// sweeps over the values follow.
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

/// A row of fp32 of which each thread of a block has every Threads-th pack of 16 bytes.
/// Places behind the row's end hold -infinity.
/// \pre the matrix is fp32 and is_wide(), and rows have at most `longest` columns
template <int Threads, int Packs>
class held_row {
public:
  static constexpr int threads = Threads;
  static constexpr int values = 4;                         ///< Of a pack.
  static constexpr int longest = Threads * Packs * values; ///< Columns of a row.

  __device__ held_row(const stored& source, std::int64_t row, int columns)
    : columns_(columns) {
    const auto* const from =
      static_cast<const float*>(source.data) + row * source.stride;
    TROUPE_UNROLL
    for (int i = 0; i < Packs; ++i)
      if (column_of(i) < columns)
        packs_[i] = *reinterpret_cast<const sixteen_bytes*>(from + column_of(i));
      else
        for (auto& word : packs_[i].words)
          word = 0xff800000U; // -infinity
  }

  /// Distance of a column from this thread's first column.
  __device__ static int distance_to(int column) { return column - column_of(0); }

  /// The largest of this thread's values. NaNs count as less than any number.
  __device__ float largest() const {
    float most[values];
    for (int w = 0; w < values; ++w)
      most[w] = fp32_of_bits(packs_[0].words[w]);
    TROUPE_UNROLL
    for (int i = 1; i < Packs; ++i) {
      TROUPE_UNROLL
      for (int w = 0; w < values; ++w)
        most[w] = fmaxf(most[w], fp32_of_bits(packs_[i].words[w]));
    }
    return fmaxf(fmaxf(most[0], most[1]), fmaxf(most[2], most[3]));
  }

  /// Calls f(value, distance) for each of this thread's values, places behind the row's
  /// end included. The distance is counted from the thread's first column.
  template <class F>
  __device__ void for_values(const F& f) const {
    TROUPE_UNROLL
    for (int i = 0; i < Packs; ++i) {
      TROUPE_UNROLL
      for (int w = 0; w < values; ++w)
        f(fp32_of_bits(packs_[i].words[w]), i * Threads * values + w);
    }
  }

  /// Stores turn(x, column) for each of this thread's values x, rounded to bf16.
  /// \param to a matrix of bf16 that is_wide()
  template <class Turn>
  __device__ void store(const stored& to, std::int64_t row, const Turn& turn) const {
    auto* const begin = static_cast<bf16*>(to.data) + row * to.stride;
    TROUPE_UNROLL
    for (int i = 0; i < Packs; ++i)
      if (column_of(i) < columns_) {
        float turned[values];
        TROUPE_UNROLL
        for (int w = 0; w < values; ++w)
          turned[w] = turn(fp32_of_bits(packs_[i].words[w]), column_of(i) + w);
        eight_bytes bits;
        for (int w = 0; w < 2; ++w)
          bits.words[w] = bits_of_bf16(turned[2 * w])
                          | (unsigned{bits_of_bf16(turned[2 * w + 1])} << 16);
        *reinterpret_cast<eight_bytes*>(begin + column_of(i)) = bits;
      }
  }

private:
  struct alignas(8) eight_bytes {
    unsigned words[2];
  };

  /// First column of this thread's i-th pack.
  __device__ static int column_of(int i) {
    return (i * Threads + static_cast<int>(threadIdx.x)) * values;
  }

  int columns_;
  sixteen_bytes packs_[Packs];
};

} // namespace troupe::cuda
