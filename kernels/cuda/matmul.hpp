// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "kernels/cuda/stream.hpp"
#include "kernels/epilogue.hpp"
#include "kernels/kept_right_side.hpp"

namespace troupe::cuda {

/// matmul.hpp's on a GPU: cuBLASLt's product, then what follows it. \param by what
/// floats among the operands are rounded to \param exact not to tf32 either
void matmul(precision by, stored_matrix<const float> a, const kept_right_side<float>& b,
            float beta, stored_matrix<float> c, stream& on, const epilogue<float>& end,
            bool exact = false);

} // namespace troupe::cuda
