// SPDX-License-Identifier: BSD-3-Clause
// Loads and stores of matrices in fp32 or bf16, inside a .cu.
#pragma once

#include "kernels/cuda/source.hpp"
#include "kernels/stored_matrix.hpp"

#include <bit>
#include <cstdint>

namespace troupe::cuda {

/// Number of neighbouring values of a row that are read and written together: 16 bytes
/// of bf16, or twice 16 bytes of fp32. Used where rows of all matrices of a kernel can
/// be cut into packs.
inline constexpr int pack = 8;

/// 16 bytes, moved by one instruction.
struct alignas(16) sixteen_bytes {
  unsigned words[4];
};

__device__ inline float fp32_of_bits(unsigned bits) {
  return std::bit_cast<float>(bits);
}

__device__ inline unsigned bits_of_fp32(float value) {
  return std::bit_cast<unsigned>(value);
}

/// Rounds to nearest, ties to even, as CUDA does. Unlike on the CPU, numbers too small
/// for a normal fp32 are kept.
__device__ inline unsigned short bits_of_bf16(float value) {
  const __nv_bfloat16_raw raw = __float2bfloat16_rn(value);
  return raw.x;
}

/// N neighbouring values as stored in memory. Loads overlap if all loads come before
/// the first conversion to numbers.
template <int N>
struct stored_bits {
  static_assert(N == pack);
  sixteen_bytes parts[2]; ///< With bf16, only the first part is used.
};

template <>
struct stored_bits<1> {
  unsigned word;
};

/// A matrix of fp32 or of bf16 as kernels access it: not transposed.
struct stored {
  void* data;
  std::int64_t stride;
  bool is_bf16;

  /// Loads N neighbouring values of a row.
  /// \pre N is 1; or N is `pack`, the matrix is_wide() and `column` is a multiple of
  /// `pack`
  template <int N>
  __device__ stored_bits<N> load_bits(std::int64_t row, std::int64_t column) const {
    const auto offset = row * stride + column;
    stored_bits<N> to;
    if constexpr (N == 1) {
      if (is_bf16)
        to.word = static_cast<const unsigned short*>(data)[offset];
      else
        to.word = static_cast<const unsigned*>(data)[offset];
    } else {
      const auto* const from = reinterpret_cast<const sixteen_bytes*>(
        static_cast<const char*>(data) + offset * (is_bf16 ? 2 : 4));
      to.parts[0] = from[0];
      if (!is_bf16)
        to.parts[1] = from[1];
    }
    return to;
  }

  /// Converts loaded bits to fp32, by the type of this matrix.
  template <int N>
  __device__ void numbers(const stored_bits<N>& from, float (&to)[N]) const {
    if constexpr (N == 1) {
      to[0] = fp32_of_bits(is_bf16 ? from.word << 16 : from.word);
    } else if (is_bf16) {
      for (int i = 0; i < N; i += 2) {
        to[i] = fp32_of_bits(from.parts[0].words[i / 2] << 16);
        to[i + 1] = fp32_of_bits(from.parts[0].words[i / 2] & 0xffff0000U);
      }
    } else {
      for (int i = 0; i < N; ++i)
        to[i] = fp32_of_bits(from.parts[i / 4].words[i % 4]);
    }
  }

  /// Loads N neighbouring values of a row as fp32.
  /// \pre as for load_bits()
  template <int N>
  __device__ void load(std::int64_t row, std::int64_t column, float (&to)[N]) const {
    numbers(load_bits<N>(row, column), to);
  }

  /// Stores N neighbouring values of a row, rounded if the matrix is bf16.
  /// \pre as for load_bits()
  template <int N>
  __device__ void store(std::int64_t row, std::int64_t column,
                        const float (&from)[N]) const {
    const auto offset = row * stride + column;
    if constexpr (N == 1) {
      if (is_bf16)
        static_cast<unsigned short*>(data)[offset] = bits_of_bf16(from[0]);
      else
        static_cast<float*>(data)[offset] = from[0];
    } else if (is_bf16) {
      sixteen_bytes bits;
      for (int i = 0; i < N; i += 2)
        bits.words[i / 2] =
          bits_of_bf16(from[i]) | (unsigned{bits_of_bf16(from[i + 1])} << 16);
      *reinterpret_cast<sixteen_bytes*>(static_cast<bf16*>(data) + offset) = bits;
    } else {
      auto* to = reinterpret_cast<sixteen_bytes*>(static_cast<float*>(data) + offset);
      for (int half = 0; half < N / 4; ++half) {
        sixteen_bytes bits;
        for (int i = 0; i < 4; ++i)
          bits.words[i] = bits_of_fp32(from[4 * half + i]);
        to[half] = bits;
      }
    }
  }
};

template <class Scalar>
stored stored_of(const stored_matrix<Scalar>& m) {
  return {const_cast<void*>(static_cast<const void*>(m.data)), m.stride, m.is_bf16};
}

__host__ __device__ inline stored stored_of(const float* row) {
  return {const_cast<float*>(row), 0, false};
}

/// True if rows of the matrix divide into packs that begin at multiples of 16 bytes, or
/// if the matrix has no data.
template <class Scalar>
bool is_wide(const stored_matrix<Scalar>& m) {
  return m.data == nullptr
         || (m.columns % pack == 0 && m.stride % pack == 0
             && reinterpret_cast<std::uintptr_t>(m.data) % 16 == 0);
}

inline bool is_wide(const float* array) {
  return reinterpret_cast<std::uintptr_t>(array) % 16 == 0;
}

/// Rows of `columns` values: wide if a row is a number of whole packs.
struct is_packs {
  std::int64_t columns;
};

inline bool is_wide(const is_packs& rows) {
  return rows.columns % pack == 0;
}

/// Calls f with the pack size that all matrices and arrays allow, as a constant: pack
/// or 1.
template <class F, class... Arrays>
void by_pack(const F& f, const Arrays&... arrays) {
  if ((is_wide(arrays) && ...))
    f(std::integral_constant<int, pack>{});
  else
    f(std::integral_constant<int, 1>{});
}

constexpr unsigned blocks_of(std::int64_t items, std::int64_t a_block) {
  return static_cast<unsigned>((items + a_block - 1) / a_block);
}

} // namespace troupe::cuda
