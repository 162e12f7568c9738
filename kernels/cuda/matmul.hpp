// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "kernels/cuda/stream.hpp"
#include "kernels/epilogue.hpp"
#include "kernels/kept_right_side.hpp"

namespace troupe::cuda {

/// The product of kernels/matmul.hpp on a GPU, by cuBLASLt. The epilogue is the
/// library's where the stream accepts the epilogue for bf16, else one more kernel.
/// \param operand_precision type to which float operands are rounded
/// \param exact true if operands must not be rounded to TF32 either
/// \throws std::bad_alloc
/// \throws std::runtime_error if a launch fails
void matmul(precision operand_precision, stored_matrix<const float> a,
            const kept_right_side<float>& b, float beta, stored_matrix<float> c,
            stream& gpu_stream, const epilogue<float>& end, bool exact = false);

} // namespace troupe::cuda
