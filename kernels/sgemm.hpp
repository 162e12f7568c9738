// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "kernels/epilogue.hpp"
#include "kernels/matrix.hpp"

namespace troupe {

/// c = the epilogue of alpha a b + beta c, on this thread, in vector instructions. The
/// epilogue finishes each part of c while the part is in the cache. Before the
/// epilogue the bits of an element depend only on the factors, the row of a, the column
/// of b and the old value. The number of calls that compute c changes no bit.
/// \pre the sizes fit, the depth is at least 1, and c is not transposed
void sgemm(matrix<const float> a, matrix<const float> b, float alpha, float beta,
           matrix<float> c, const epilogue<float>& end);

/// Size, in floats, of the array that a packed (depth, columns) matrix needs.
std::int64_t packed_size(std::int64_t depth, std::int64_t columns);

/// Packs all of b once, into an array of packed_size() floats, for many products.
void pack_right(matrix<const float> b, float* to);

/// c = alpha a b + beta c, with a packed b of `depth` rows. For a (M, K) and c (M, N),
/// the product uses the first K rows and the first N columns of b.
/// \pre 1 <= K <= depth, and c is not transposed
void sgemm_packed(matrix<const float> a, const float* b, std::int64_t depth,
                  float alpha, float beta, matrix<float> c);

} // namespace troupe
