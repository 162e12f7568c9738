// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/widened_attention.hpp"

#include "kernels/array_layout.hpp"
#include "kernels/fused_attention.hpp"

namespace troupe {

namespace {

/// Memory for a head's matrices in fp32, a part of the scratch. A forward uses y and no
/// gradients.
struct widened_space {
  widened_space(std::int64_t length, std::int64_t size, float* begin = nullptr) {
    array_layout<float> layout{begin};
    for (auto* const array : {&q, &k, &v, &y, &dy, &dq, &dk, &dv})
      *array = layout.allocate(length * size);
    fused = layout.allocate(fused_attention::scratch(length, size));
    end = layout.end();
  }

  float *q, *k, *v, *y, *dy, *dq, *dk, *dv, *fused;
  std::int64_t end;
};

/// Copies an operand of products into `buffer`, rounded to bf16 and widened to fp32.
matrix<const float> operand(const stored_matrix<const float>& m, float* buffer) {
  const auto result = dense(buffer, m.rows, m.columns);
  for (std::int64_t r = 0; r < m.rows; ++r)
    if (m.is_bf16)
      widen_row(m.rounded().row(r), m.columns, result.row(r));
    else
      for (std::int64_t c = 0; c < m.columns; ++c)
        result.row(r)[c] = rounded_to_bf16(m.plain().row(r)[c]);
  return result;
}

head_matrices<const float> operands(const widened_attention::head<const float>& in,
                                    const widened_space& buffers) {
  return {operand(in.q, buffers.q), operand(in.k, buffers.k), operand(in.v, buffers.v)};
}

/// The values in fp32, without rounding: a copy in `buffer` if the matrix is bf16.
matrix<const float> exact(const stored_matrix<const float>& m, float* buffer) {
  return m.is_bf16 ? operand(m, buffer) : m.plain();
}

/// Memory for the result `to`: `buffer` if `to` is bf16, otherwise `to` itself.
matrix<float> output_for(const stored_matrix<float>& to, float* buffer) {
  return to.is_bf16 ? dense(buffer, to.rows, to.columns) : to.plain();
}

void store(const stored_matrix<float>& to, const matrix<float>& values) {
  if (to.is_bf16)
    round_into(to, values);
}

} // namespace

std::int64_t widened_attention::scratch(std::int64_t length, std::int64_t size) {
  return widened_space{length, size}.end;
}

void widened_attention::forward(const head<const float>& in, stored_matrix<float> y,
                                float* log_sum, float* space) {
  const widened_space buffers{in.q.rows, in.q.columns, space};
  const auto result = output_for(y, buffers.y);
  fused_attention::forward(operands(in, buffers), result, log_sum, buffers.fused,
                           precision::bf16);
  store(y, result);
}

void widened_attention::backward(const head<const float>& in,
                                 stored_matrix<const float> y, const float* log_sum,
                                 stored_matrix<const float> dy,
                                 const head<float>& gradient, float* space) {
  const widened_space buffers{in.q.rows, in.q.columns, space};
  const auto dq = output_for(gradient.q, buffers.dq),
             dk = output_for(gradient.k, buffers.dk),
             dv = output_for(gradient.v, buffers.dv);
  fused_attention::backward(operands(in, buffers), exact(y, buffers.y), log_sum,
                            operand(dy, buffers.dy), {dq, dk, dv}, buffers.fused,
                            precision::bf16);
  store(gradient.q, dq);
  store(gradient.k, dk);
  store(gradient.v, dv);
}

} // namespace troupe
