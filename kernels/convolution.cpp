// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/convolution.hpp"

#include "kernels/cuda/dispatch.hpp"
#include "kernels/cuda/kernels.hpp"
#include "kernels/matmul.hpp"

#include <algorithm>

namespace troupe {

namespace {

/// Groups of images. The weight gradients of each group are summed separately, then the
/// groups in order.
constexpr int groups = 4;

/// Calls `copied(pixel, position, count)` for each weight of a filter and each row of
/// outputs. Pixels [pixel, pixel + count) of an image are the values of the image's
/// patches from index `position` on. All other values of patches are padding.
template <class Copied>
void for_each_row(const convolution_shape& dims, const Copied& copied) {
  std::int64_t offset = 0; // of the weights before
  for (std::int64_t c = 0; c < dims.channels; ++c)
    for (std::int64_t i = -dims.padding; i < dims.size - dims.padding; ++i)
      for (std::int64_t j = -dims.padding; j < dims.size - dims.padding; ++j) {
        const auto begin_row = std::max<std::int64_t>(0, -i),
                   end_row = std::min(dims.out_height(), dims.height - i),
                   begin_column = std::max<std::int64_t>(0, -j),
                   end_column = std::min(dims.out_width(), dims.width - j);
        for (auto h = begin_row; h < end_row && begin_column < end_column; ++h)
          copied((c * dims.height + h + i) * dims.width + begin_column + j,
                 offset + h * dims.out_width() + begin_column,
                 end_column - begin_column);
        offset += dims.positions();
      }
}

/// patches: (C K K, positions), a row for each weight of a filter.
template <class Scalar>
void gather(const convolution_shape& dims, const Scalar* image, Scalar* patches) {
  if (dims.padding > 0)
    std::fill_n(patches, dims.patch() * dims.positions(), Scalar{0});
  for_each_row(dims,
               [=](std::int64_t pixel, std::int64_t position, std::int64_t count) {
                 std::copy_n(image + pixel, count, patches + position);
               });
}

/// The adjoint of gather: each pixel of the image = the sum of the pixel's values in
/// all patches.
template <class Scalar>
void scatter(const convolution_shape& dims, const Scalar* patches, Scalar* image) {
  std::fill(image, image + dims.in_values(), Scalar{0});
  for_each_row(dims,
               [=](std::int64_t pixel, std::int64_t position, std::int64_t count) {
                 for (std::int64_t w = 0; w < count; ++w)
                   image[pixel + w] += patches[position + w];
               });
}

} // namespace

template <class Scalar>
std::int64_t convolution<Scalar>::scratch(const convolution_shape& dims, int threads) {
  return dims.patch() * dims.positions() * threads
         + groups * dims.filters * (dims.patch() + 1);
}

template <class Scalar>
void convolution<Scalar>::forward(const convolution_shape& dims, const Scalar* x,
                                  const Scalar* w, const Scalar* bias, Scalar* y,
                                  Scalar* space, stream& stream) {
  if constexpr (cuda::may_run<Scalar>)
    if (auto* const gpu = stream.gpu())
      return cuda::convolution::forward(dims, x, w, bias, y, gpu->handle());
  const auto weights = dense(w, dims.filters, dims.patch());
  stream.cpu().run_ranges(
    dims.images, 1, [&](std::int64_t first, std::int64_t last, int worker) {
      auto* patches = space + worker * dims.patch() * dims.positions();
      for (auto n = first; n < last; ++n) {
        gather(dims, x + n * dims.in_values(), patches);
        auto* out = y + n * dims.out_values();
        for (std::int64_t o = 0; o < dims.filters; ++o)
          std::fill_n(out + o * dims.positions(), dims.positions(), bias[o]);
        multiply<Scalar>(precision::fp32, weights,
                         dense(patches, dims.patch(), dims.positions()), 1, 1,
                         dense(out, dims.filters, dims.positions()));
      }
    });
}

template <class Scalar>
void convolution<Scalar>::input_gradient(const convolution_shape& dims, const Scalar* w,
                                         const Scalar* dy, Scalar* dx, Scalar* space,
                                         stream& stream) {
  if constexpr (cuda::may_run<Scalar>)
    if (auto* const gpu = stream.gpu())
      return cuda::convolution::input_gradient(dims, w, dy, dx, gpu->handle());
  const auto weights = dense(w, dims.filters, dims.patch());
  stream.cpu().run_ranges(
    dims.images, 1, [&](std::int64_t first, std::int64_t last, int worker) {
      auto* patches = space + worker * dims.patch() * dims.positions();
      for (auto n = first; n < last; ++n) {
        multiply<Scalar>(
          precision::fp32, weights.t(),
          dense(dy + n * dims.out_values(), dims.filters, dims.positions()), 1, 0,
          dense(patches, dims.patch(), dims.positions()));
        scatter(dims, patches, dx + n * dims.in_values());
      }
    });
}

template <class Scalar>
void convolution<Scalar>::weight_gradient(const convolution_shape& dims,
                                          const Scalar* x, const Scalar* dy,
                                          Scalar beta, Scalar* dw, Scalar* dbias,
                                          Scalar* space, stream& stream) {
  if constexpr (cuda::may_run<Scalar>)
    if (auto* const gpu = stream.gpu())
      return cuda::convolution::weight_gradient(dims, x, dy, beta, dw, dbias,
                                                gpu->handle());
  const auto weights = dims.filters * dims.patch();
  auto* const sums = space + stream.threads() * dims.patch() * dims.positions();
  stream.cpu().run(groups, [&](int group, int worker) {
    auto* patches = space + worker * dims.patch() * dims.positions();
    auto* sum_w = sums + group * (weights + dims.filters);
    auto* sum_bias = sum_w + weights;
    std::fill(sum_w, sum_bias + dims.filters, Scalar{0});
    for (auto n = dims.images * group / groups; n < dims.images * (group + 1) / groups;
         ++n) {
      const auto* upper = dy + n * dims.out_values();
      gather(dims, x + n * dims.in_values(), patches);
      multiply<Scalar>(precision::fp32, dense(upper, dims.filters, dims.positions()),
                       dense(patches, dims.patch(), dims.positions()).t(), 1, 1,
                       dense(sum_w, dims.filters, dims.patch()));
      for (std::int64_t o = 0; o < dims.filters; ++o)
        for (std::int64_t p = 0; p < dims.positions(); ++p)
          sum_bias[o] += upper[o * dims.positions() + p];
    }
  });
  if (beta == 0) {
    std::fill_n(dw, weights, Scalar{0});
    std::fill_n(dbias, dims.filters, Scalar{0});
  }
  for (int group = 0; group < groups; ++group) {
    const auto* sum_w = sums + group * (weights + dims.filters);
    for (std::int64_t i = 0; i < weights; ++i)
      dw[i] += sum_w[i];
    for (std::int64_t o = 0; o < dims.filters; ++o)
      dbias[o] += sum_w[weights + o];
  }
}

template struct convolution<float>;
template struct convolution<double>;

} // namespace troupe
