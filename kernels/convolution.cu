// SPDX-License-Identifier: BSD-3-Clause
// Convolution on a GPU, by the definition: networks with convolutions are small here.

#include "kernels/convolution.hpp"
#include "kernels/cuda/elementwise.hpp"
#include "kernels/cuda/kernels.hpp"
#include "kernels/cuda/warp.hpp"

namespace troupe::cuda {

namespace {

/// The position of a value in (.., H, W).
struct pixel {
  std::int64_t plane, row, column;
};

__device__ pixel pixel_at(std::int64_t index, std::int64_t height, std::int64_t width) {
  return {index / (height * width), index / width % height, index % width};
}

/// The value that a filter reads of an image (C, H, W) at (c, h, w); 0 in the padding.
__device__ float padded_value(const convolution_shape& dims, const float* image,
                              std::int64_t c, std::int64_t h, std::int64_t w) {
  return h < 0 || w < 0 || h >= dims.height || w >= dims.width
           ? 0
           : image[(c * dims.height + h) * dims.width + w];
}

/// The forward. A row is an image, and a column is one output of the image.
struct convolve {
  convolution_shape dims;
  const float *x, *w, *bias;
  float* y;
  std::int64_t out_height, out_width;

  template <int N>
  __device__ void run(std::int64_t n, std::int64_t output_index) const {
    const auto position = pixel_at(output_index, out_height, out_width);
    const auto K = dims.size;
    const float* const image = x + n * dims.channels * dims.height * dims.width;
    const float* weight = w + position.plane * dims.channels * K * K;
    float sum = bias[position.plane];
    for (std::int64_t c = 0; c < dims.channels; ++c)
      for (std::int64_t i = 0; i < K; ++i)
        for (std::int64_t j = 0; j < K; ++j)
          sum += *weight++
                 * padded_value(dims, image, c, position.row + i - dims.padding,
                                position.column + j - dims.padding);
    y[n * dims.filters * out_height * out_width + output_index] = sum;
  }
};

/// The input gradient. A row is an image, and a column is one pixel: a sum over all
/// outputs that read the pixel.
struct convolve_back {
  convolution_shape dims;
  const float *w, *dy;
  float* dx;
  std::int64_t out_height, out_width;

  template <int N>
  __device__ void run(std::int64_t n, std::int64_t pixel_index) const {
    const auto position = pixel_at(pixel_index, dims.height, dims.width);
    const auto K = dims.size;
    float sum = 0;
    for (std::int64_t o = 0; o < dims.filters; ++o)
      for (std::int64_t i = 0; i < K; ++i)
        for (std::int64_t j = 0; j < K; ++j) {
          const auto h = position.row + dims.padding - i,
                     v = position.column + dims.padding - j;
          if (h >= 0 && v >= 0 && h < out_height && v < out_width)
            sum += w[((o * dims.channels + position.plane) * K + i) * K + j]
                   * dy[((n * dims.filters + o) * out_height + h) * out_width + v];
        }
    dx[n * dims.channels * dims.height * dims.width + pixel_index] = sum;
  }
};

constexpr int sum_threads = 128;

/// A block sums the gradient of one weight, or behind the weights, of one bias. A
/// thread sums every sum_threads-th output.
__global__ void sum_weight(convolution_shape dims, const float* x, const float* dy,
                           float beta, float* dw, float* dbias, std::int64_t out_height,
                           std::int64_t out_width) {
  TROUPE_SHARED(float, warps, [sum_threads / warp_size]);
  const auto K = dims.size, weights = dims.filters * dims.channels * K * K;
  const std::int64_t which = blockIdx.x;
  const bool is_bias = which >= weights;
  const auto o = is_bias ? which - weights : which / (dims.channels * K * K);
  const auto position = pixel_at(which % (dims.channels * K * K), K, K); // c, i, j
  const auto outputs = out_height * out_width;
  float sum = 0;
  for (std::int64_t p = threadIdx.x; p < dims.images * outputs; p += sum_threads) {
    const auto n = p / outputs;
    const auto from = pixel_at(p % outputs, out_height, out_width);
    const float upper = dy[(n * dims.filters + o) * outputs + p % outputs];
    sum += is_bias
             ? upper
             : upper
                 * padded_value(dims, x + n * dims.channels * dims.height * dims.width,
                                position.plane, from.row + position.row - dims.padding,
                                from.column + position.column - dims.padding);
  }
  sum = sum_over_block(sum, warps);
  if (threadIdx.x > 0)
    return;
  float* const to = is_bias ? dbias + o : dw + which;
  *to = sum + (beta == 0 ? 0 : beta * *to);
}

} // namespace

void convolution::forward(const convolution_shape& dims, const float* x, const float* w,
                          const float* bias, float* y, stream_handle stream) {
  for_each_value(stream, dims.images, dims.out_values(),
                 convolve{dims, x, w, bias, y, dims.out_height(), dims.out_width()});
}

void convolution::input_gradient(const convolution_shape& dims, const float* w,
                                 const float* dy, float* dx, stream_handle stream) {
  for_each_value(stream, dims.images, dims.in_values(),
                 convolve_back{dims, w, dy, dx, dims.out_height(), dims.out_width()});
}

void convolution::weight_gradient(const convolution_shape& dims, const float* x,
                                  const float* dy, float beta, float* dw, float* dbias,
                                  stream_handle stream) {
  const auto sums = dims.filters * (dims.patch() + 1);
  launch(stream, {static_cast<unsigned>(sums), 1, 1}, {sum_threads, 1, 1}, 0,
         sum_weight, dims, x, dy, beta, dw, dbias, dims.out_height(), dims.out_width());
}

} // namespace troupe::cuda
