// SPDX-License-Identifier: BSD-3-Clause
// ReLU and the maximum of 2 x 2 squares, on a GPU: one thread per square.

#include "kernels/cuda/elementwise.hpp"
#include "kernels/cuda/kernels.hpp"
#include "kernels/relu_pool.hpp"

namespace troupe::cuda {

namespace {

struct pool_forward {
  std::int64_t width; // of a plane: W
  const float* x;
  stored y;
  std::uint8_t* choice;

  template <int N>
  __device__ void run(std::int64_t row, std::int64_t column) const {
    static_assert(N == 1);
    const float* const top = x + 2 * row * width + 2 * column;
    const float square[] = {top[0], top[1], top[width], top[width + 1]};
    float most[1] = {0};
    std::uint8_t chosen = 4;
    for (std::uint8_t i = 0; i < 4; ++i)
      if (square[i] > most[0]) {
        most[0] = square[i];
        chosen = i;
      }
    y.store(row, column, most);
    choice[row * (width / 2) + column] = chosen;
  }
};

struct pool_backward {
  std::int64_t width;
  stored dy;
  const std::uint8_t* choice;
  float* dx;

  template <int N>
  __device__ void run(std::int64_t row, std::int64_t column) const {
    static_assert(N == 1);
    float upper[1];
    dy.load(row, column, upper);
    const int chosen = choice[row * (width / 2) + column];
    float* const top = dx + 2 * row * width + 2 * column;
    top[0] = chosen == 0 ? upper[0] : 0;
    top[1] = chosen == 1 ? upper[0] : 0;
    top[width] = chosen == 2 ? upper[0] : 0;
    top[width + 1] = chosen == 3 ? upper[0] : 0;
  }
};

} // namespace

void relu_pool::forward(const shape& dims, const float* x, output y,
                        std::uint8_t* choice, stream_handle stream) {
  for_each_value(stream, dims.planes * (dims.height / 2), dims.width / 2,
                 pool_forward{dims.width, x, stored_of(y), choice});
}

void relu_pool::backward(const shape& dims, input dy, const std::uint8_t* choice,
                         float* dx, stream_handle stream) {
  for_each_value(stream, dims.planes * (dims.height / 2), dims.width / 2,
                 pool_backward{dims.width, stored_of(dy), choice, dx});
}

} // namespace troupe::cuda
