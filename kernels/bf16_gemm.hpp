// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "kernels/bf16_block.hpp"
#include "kernels/epilogue.hpp"
#include "kernels/stored_matrix.hpp"

#include <cstdint>

namespace troupe {

// Each function takes one of bf16_paths(). \pre what is packed and what multiplies it
// are of one path

/// c = what the epilogue makes of alpha a b + beta c on this thread. The values of a
/// and b are rounded to bf16 as they are packed, if they are not yet; sums are fp32,
/// and rounded at the end if c is bf16. A sum goes along the depth, so its bits depend
/// on its row of a, its column of b and c alone: not on how c was cut into calls.
/// \pre the sizes fit, c is not transposed, alpha is 1 or beta 0, and beta is 0 if c is
/// bf16
void bf16_gemm(bf16_path path, stored_matrix<const float> a,
               stored_matrix<const float> b, float alpha, float beta,
               stored_matrix<float> c, const epilogue<float>& end);

/// Values (fp32) of room that a (depth, columns) matrix needs when it is packed.
std::int64_t bf16_packed_size(std::int64_t depth, std::int64_t columns);

/// Packs columns [first, first + columns) of b to their places in such room, for many
/// products. \pre first is a multiple of 32
void bf16_pack_right(bf16_path path, stored_matrix<const float> b, std::int64_t first,
                     std::int64_t columns, float* to);

/// The same product with a b of `depth` rows that was packed: its first rows, as many
/// as a has columns, and its columns from `first` on, as many as c. Rows of b up to the
/// next multiple of 32 are read too, and multiplied by 0. \pre first is a multiple of
/// 32
void bf16_gemm_packed(bf16_path path, stored_matrix<const float> a, const float* b,
                      std::int64_t depth, std::int64_t first, float alpha, float beta,
                      stored_matrix<float> c, const epilogue<float>& end);

} // namespace troupe
