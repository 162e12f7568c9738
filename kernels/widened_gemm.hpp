// SPDX-License-Identifier: BSD-3-Clause
// Products of bf16 by the fp32 kernel (bf16_path::widen): packing rounds operands to
// bf16 and widens the values to fp32.
//
// With alpha 1 and beta 0 or 1, an element's sum has the bits of sgemm for operands
// rounded to bf16. A depth K has n = ceil(K / 512) blocks. Block i has the indices from
// K i / n up to, but without, K (i + 1) / n; both bounds are rounded down.
//
//   block   s = 0; for each index in order s = s + a b, rounded once where the
//           processor has such an instruction
//   sum     beta c, or nothing; then each block's s is added in order; then times alpha
//
// Subnormal values of bf16 and subnormal sums keep their values. Rounding to bf16 turns
// subnormal fp32 operands into 0.
#pragma once

#include "kernels/epilogue.hpp"
#include "kernels/stored_matrix.hpp"

#include <cstdint>

namespace troupe {

/// Computes the product that bf16_gemm() computes.
void widened_gemm(stored_matrix<const float> a, stored_matrix<const float> b,
                  float alpha, float beta, stored_matrix<float> c,
                  const epilogue<float>& end);

/// Packs as bf16_pack_right() does, into an array of bf16_packed_size() floats. Packed
/// values are bf16.
void widened_pack_right(stored_matrix<const float> b, std::int64_t first,
                        std::int64_t columns, float* to);

/// Computes the product that bf16_gemm_packed() computes. Rows of b beyond a's columns
/// are not read.
void widened_gemm_packed(stored_matrix<const float> a, const float* b,
                         std::int64_t depth, std::int64_t first, float alpha,
                         float beta, stored_matrix<float> c,
                         const epilogue<float>& end);

} // namespace troupe
