// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "kernels/bf16_block.hpp"
#include "kernels/epilogue.hpp"
#include "kernels/stored_matrix.hpp"

#include <cstdint>

namespace troupe {

// Products of bf16 on the caller's thread. `path` is one of bf16_paths().
// \pre a packed operand was packed by the path that multiplies it

/// c = the epilogue of alpha a b + beta c, on this thread. Packing rounds fp32 values
/// of a and b to bf16. Sums run along the depth in fp32, and are rounded once at the
/// end if c is bf16. A sum's bits depend only on the path, alpha, beta, the row of a,
/// the column of b and the old value of c. A split of c into several calls changes no
/// bit.
/// \pre the sizes fit, the depth is at least 1, c is not transposed, alpha is 1 or beta
/// 0, and beta is 0 if c is bf16
/// \throws std::logic_error if alpha or beta breaks the precondition
void bf16_gemm(bf16_path path, stored_matrix<const float> a,
               stored_matrix<const float> b, float alpha, float beta,
               stored_matrix<float> c, const epilogue<float>& end);

/// Size, in floats, of the array that a packed (depth, columns) matrix needs.
std::int64_t bf16_packed_size(std::int64_t depth, std::int64_t columns);

/// Packs columns [first, first + columns) of b into the array `to`, at the offset of
/// column `first`, for many products.
/// \pre `first` is a multiple of 32
void bf16_pack_right(bf16_path path, stored_matrix<const float> b, std::int64_t first,
                     std::int64_t columns, float* to);

/// Computes the product of bf16_gemm() with a packed b of `depth` rows. For a (M, K)
/// and c (M, N), the product uses the first K rows of b, and N columns from `first` on.
/// Except on the path `widen`, rows of b up to the next multiple of 32 are read too,
/// and multiplied by 0.
/// \pre `first` is a multiple of 32, 1 <= K <= depth, and otherwise as for bf16_gemm()
/// \throws std::logic_error if alpha or beta breaks the precondition
void bf16_gemm_packed(bf16_path path, stored_matrix<const float> a, const float* b,
                      std::int64_t depth, std::int64_t first, float alpha, float beta,
                      stored_matrix<float> c, const epilogue<float>& end);

} // namespace troupe
