// SPDX-License-Identifier: BSD-3-Clause
// The gradient of rectified linear units on a GPU.

#include "kernels/cuda/elementwise.hpp"
#include "kernels/cuda/kernels.hpp"

namespace troupe::cuda {

namespace {

struct relu_backward {
  stored dy;
  matrix<const std::uint8_t> mask;
  stored dx;

  template <int N>
  __device__ void run(std::int64_t row, std::int64_t column) const {
    float values[N];
    dy.load(row, column, values);
    const auto* const passes = mask.data + row * mask.stride + column;
    for (int i = 0; i < N; ++i)
      values[i] = passes[i] != 0 ? values[i] : 0;
    dx.store(row, column, values);
  }
};

} // namespace

void relu::backward(input dy, matrix<const std::uint8_t> mask, output dx,
                    stream_handle stream) {
  for_each_pack(stream, dy.rows, dy.columns,
                relu_backward{stored_of(dy), mask, stored_of(dx)}, dy, dx);
}

} // namespace troupe::cuda
