// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "kernels/stream.hpp"

#include <cstdint>

namespace troupe {

/// N images of C channels, H by W, with a border of P zeros on each side, under K by K
/// filters to O channels. The stride is 1, so outputs are H+2P-K+1 by W+2P-K+1.
struct convolution_shape {
  std::int64_t images;      ///< N
  std::int64_t channels;    ///< C
  std::int64_t height;      ///< H
  std::int64_t width;       ///< W
  std::int64_t filters;     ///< O
  std::int64_t size;        ///< K
  std::int64_t padding = 0; ///< P

  std::int64_t out_height() const { return height + 2 * padding - size + 1; }
  std::int64_t out_width() const { return width + 2 * padding - size + 1; }
  /// Number of values of one image of x.
  std::int64_t in_values() const { return channels * height * width; }
  /// Number of values of one image of y.
  std::int64_t out_values() const { return filters * out_height() * out_width(); }
  /// Number of values of x that one value of y reads, padding included.
  std::int64_t patch() const { return channels * size * size; }
  /// Number of patches of one image.
  std::int64_t positions() const { return out_height() * out_width(); }
};

/// Two-dimensional convolution (cross-correlation), on the CPU as products with the
/// matrix of all patches of an image. Shapes: x: (N, C, H, W); w: (O, C, K, K); bias:
/// (O); y: (N, O, H+2P-K+1, W+2P-K+1). No stream rounds operands to bf16. With few
/// filters bf16 is no faster, and rounding would change which pixels a pooling layer
/// after the convolution chooses.
template <class Scalar>
struct convolution {
  /// Number of values of scratch memory for a forward or a backward on a stream of
  /// `threads` threads.
  static std::int64_t scratch(const convolution_shape& dims, int threads);

  /// Fills y.
  /// \param space scratch memory of scratch() values; unused on a GPU
  static void forward(const convolution_shape& dims, const Scalar* x, const Scalar* w,
                      const Scalar* bias, Scalar* y, Scalar* space, stream& stream);

  /// Fills dx.
  /// \param space as for forward()
  static void input_gradient(const convolution_shape& dims, const Scalar* w,
                             const Scalar* dy, Scalar* dx, Scalar* space,
                             stream& stream);

  /// dw = beta dw + gradient of w, and dbias = beta dbias + gradient of bias; beta is 0
  /// or 1. On the CPU the gradients of images are summed in 4 groups of images. Then
  /// the sums of the groups are added in order.
  /// \param space as for forward()
  static void weight_gradient(const convolution_shape& dims, const Scalar* x,
                              const Scalar* dy, Scalar beta, Scalar* dw, Scalar* dbias,
                              Scalar* space, stream& stream);
};

} // namespace troupe
