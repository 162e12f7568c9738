// SPDX-License-Identifier: BSD-3-Clause
// Products of bf16 by the kernel of fp32 (bf16_path::widen): operands are rounded to
// bf16 and widened to fp32 as they are packed.
//
// The sum of an element has the bits of sgemm's. Of a depth K it has n = ceil(K / 512)
// blocks; block i has the places from K i / n to K (i + 1) / n, both rounded down.
//
//   block   s = 0; for each place in order s = s + a b, rounded once where the
//           processor has such an instruction
//   sum     beta c, or nothing; then each block's s is added in order; then times alpha
//
// Numbers that are not normal count as what they are.
#pragma once

#include "kernels/epilogue.hpp"
#include "kernels/stored_matrix.hpp"

#include <cstdint>

namespace troupe {

/// As bf16_gemm().
void widened_gemm(stored_matrix<const float> a, stored_matrix<const float> b,
                  float alpha, float beta, stored_matrix<float> c,
                  const epilogue<float>& end);

/// As bf16_pack_right(), into the same room. Packed values are bf16.
void widened_pack_right(stored_matrix<const float> b, std::int64_t first,
                        std::int64_t columns, float* to);

/// As bf16_gemm_packed(). Rows of b beyond a's columns are not read.
void widened_gemm_packed(stored_matrix<const float> a, const float* b,
                         std::int64_t depth, std::int64_t first, float alpha,
                         float beta, stored_matrix<float> c,
                         const epilogue<float>& end);

} // namespace troupe
