// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "kernels/cuda/stream.hpp"
#include "kernels/epilogue.hpp"
#include "kernels/kept_right_side.hpp"

namespace troupe::cuda {

/// The product of kernels/matmul.hpp on a GPU, by cuBLASLt. The library applies the
/// epilogue under three conditions: Products are bf16, and beta is 0. The matrices c, x
/// and y are bf16 with rows of whole 16 bytes. The stream accepts the epilogue, and has
/// an algorithm. Otherwise one more kernel applies the epilogue.
/// \param operand_precision type to which float operands are rounded
/// \param exact true if operands must not be rounded to TF32 either
/// \throws std::bad_alloc
/// \throws std::runtime_error if a launch fails
void matmul(precision operand_precision, stored_matrix<const float> a,
            const kept_right_side<float>& b, float beta, stored_matrix<float> c,
            stream& gpu_stream, const epilogue<float>& end, bool exact = false);

} // namespace troupe::cuda
