// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "kernels/attention.hpp"

namespace troupe::on_host {

/// attention<float>::forward() and backward() as a GPU's library computes them: each
/// output is computed in double from the stored inputs. Outputs are then rounded to
/// fp32; y and gradients are rounded again, to bf16. The backward uses the stored y and
/// log_sum. The memory watch sees all accesses.
/// \pre matrices are bf16 and not transposed
/// \throws kernel_error
void attend(const attention_shape& dims, const stored_matrix<const float>& qkv,
            const stored_matrix<float>& y, float* log_sum);
void attend_backward(const attention_shape& dims, const stored_matrix<const float>& qkv,
                     const stored_matrix<const float>& y, const float* log_sum,
                     const stored_matrix<const float>& dy,
                     const stored_matrix<float>& dqkv);

/// Makes attend_backward() leave the factor 1 / sqrt(C/H) out of the gradients of
/// queries and keys, as a faulty library might. With false, gradients are right again.
void spoil_attention(bool spoiled);

} // namespace troupe::on_host
