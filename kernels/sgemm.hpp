// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "kernels/epilogue.hpp"
#include "kernels/matrix.hpp"

namespace troupe {

/// c = what the epilogue makes of alpha a b + beta c on this thread, in vector
/// instructions: it finishes each part of c while that is in the cache. The bits of an
/// element depend on its row of a, its column of b and their length alone: not on how c
/// was cut into calls. \pre the sizes fit, c is not transposed
void sgemm(matrix<const float> a, matrix<const float> b, float alpha, float beta,
           matrix<float> c, const epilogue<float>& end);

/// Values of room that a (depth, columns) matrix needs when it is packed.
std::int64_t packed_size(std::int64_t depth, std::int64_t columns);

/// Packs all of b once, for many products.
void pack_right(matrix<const float> b, float* to);

/// The same product with the first rows and columns of a b of `depth` rows that was
/// packed: as many rows as a has columns, as many columns as c.
void sgemm_packed(matrix<const float> a, const float* b, std::int64_t depth,
                  float alpha, float beta, matrix<float> c);

} // namespace troupe
