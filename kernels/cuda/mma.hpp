// SPDX-License-Identifier: BSD-3-Clause
// Tensor cores, inside a .cu: products that a warp computes together, of bf16 with fp32
// sums. PTX ISA, "Matrix fragments for mma.m16n8k16" and "ldmatrix".
#pragma once

#include "kernels/cuda/source.hpp"

#ifndef __CUDACC__
#include "kernels/cuda/on_host/tensor_core.hpp"
#endif

namespace troupe::cuda {

/// The bits of a bf16 in memory.
using bf16_bits = unsigned short;

/// 16 x 16 bf16 of a warp; a word has two neighbours of a row. Lane 4 g + t has columns
/// 2 t and 2 t + 1 of row g in word 0, and of row g + 8 in word 1. Words 2 and 3 have
/// columns 2 t + 8 and 2 t + 9 of these rows.
struct fragment {
  unsigned words[4];
};

/// Loads four matrices of 8 x 8 from shared memory. Word m is of matrix m; row r of the
/// matrix begins at the address that lane 8 m + r passes. Lane 4 g + t gets values 2 t
/// and 2 t + 1 of row g.
__device__ inline fragment load_fragment(const bf16_bits* row) {
  fragment to{};
#ifdef __CUDA_ARCH__
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(to.words[0]), "=r"(to.words[1]), "=r"(to.words[2]),
                 "=r"(to.words[3])
               : "r"(static_cast<unsigned>(__cvta_generic_to_shared(row)))
               : "memory");
#elif !defined(__CUDACC__)
  const auto group = threadIdx.x % 32 / 4, pair = threadIdx.x % 4;
  const auto rows = on_host::matrix_rows(row, group);
  for (int m = 0; m < 4; ++m)
    to.words[m] = rows[m][2 * pair] | (unsigned{rows[m][2 * pair + 1]} << 16);
#endif
  return to;
}

/// Loads the transposes of four matrices: lane 4 g + t gets value g of rows 2 t and
/// 2 t + 1.
__device__ inline fragment load_transposed(const bf16_bits* row) {
  fragment to{};
#ifdef __CUDA_ARCH__
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(to.words[0]), "=r"(to.words[1]), "=r"(to.words[2]),
                 "=r"(to.words[3])
               : "r"(static_cast<unsigned>(__cvta_generic_to_shared(row)))
               : "memory");
#elif !defined(__CUDACC__)
  const auto group = threadIdx.x % 32 / 4, pair = threadIdx.x % 4;
  const auto even = on_host::matrix_rows(row, 2 * pair),
             odd = on_host::matrix_rows(row, 2 * pair + 1);
  for (int m = 0; m < 4; ++m)
    to.words[m] = even[m][group] | (unsigned{odd[m][group]} << 16);
#endif
  return to;
}

/// sums (16 x 8) += a (16 x 16) b (16 x 8). Lane 4 g + t has columns 2 t and 2 t + 1 of
/// rows g and g + 8 of the sums. Of b, the lane has column g: rows 2 t and 2 t + 1 in
/// b0, and rows 2 t + 8 and 2 t + 9 in b1.
__device__ inline void multiply_add(float (&sums)[4], const fragment& a, unsigned b0,
                                    unsigned b1) {
#ifdef __CUDA_ARCH__
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, "
      "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
      : "r"(a.words[0]), "r"(a.words[1]), "r"(a.words[2]), "r"(a.words[3]), "r"(b0),
        "r"(b1));
#elif !defined(__CUDACC__)
  const auto result =
    on_host::multiply_in_warp({{a.words[0], a.words[1], a.words[2], a.words[3]},
                               {b0, b1},
                               {sums[0], sums[1], sums[2], sums[3]}});
  for (int i = 0; i < 4; ++i)
    sums[i] = result[i];
#endif
}

} // namespace troupe::cuda
