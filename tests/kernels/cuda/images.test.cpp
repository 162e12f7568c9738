// SPDX-License-Identifier: BSD-3-Clause
// A GPU's computations of images, compared with the CPU's in double.

#include "kernels/convolution.hpp"
#include "kernels/cuda/kernels.hpp"
#include "kernels/relu_pool.hpp"
#include "tests/kernels/cuda/judge.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

namespace troupe::images_test {

TEST_CASE("a GPU's convolution is the CPU's", "[cuda]") {
  GPU_OR_SKIP();
  const auto dims = GENERATE(
    convolution_shape{1, 1, 1, 1, 1, 1}, convolution_shape{2, 3, 5, 6, 4, 3},
    convolution_shape{3, 1, 8, 8, 6, 5, 2}, convolution_shape{1, 2, 4, 3, 2, 3, 1},
    convolution_shape{5, 2, 6, 7, 3, 2, 1});
  const bool adds = GENERATE(false, true);
  CAPTURE(dims.images, dims.channels, dims.height, dims.width, dims.padding, adds);
  const auto weights = dims.filters * dims.patch();
  const auto x = random_values<float>(dims.images * dims.in_values(), 1),
             w = random_values<float>(weights, 2),
             b = random_values<float>(dims.filters, 3),
             dy = random_values<float>(dims.images * dims.out_values(), 4),
             dw_before = random_values<float>(weights, 5),
             dbias_before = random_values<float>(dims.filters, 6);
  const auto made = gpu::in_every_order([&] {
    const gpu::array<float> gx{"x", x}, gw{"w", w}, gb{"bias", b}, gdy{"dy", dy},
      y{"y", std::ssize(dy)}, dx{"dx", std::ssize(x)};
    const auto dw = gpu::sum_of("dw", dw_before, adds),
               dbias = gpu::sum_of("dbias", dbias_before, adds);
    cuda::convolution::forward(dims, gx.data(), gw.data(), gb.data(), y.data(),
                               nullptr);
    cuda::convolution::input_gradient(dims, gw.data(), gdy.data(), dx.data(), nullptr);
    cuda::convolution::weight_gradient(dims, gx.data(), gdy.data(), adds ? 1.0F : 0.0F,
                                       dw->data(), dbias->data(), nullptr);
    gpu::wait();
    return gpu::results{y.values(), dx.values(), dw->values(), dbias->values()};
  });
  const auto xd = gpu::exact(x), wd = gpu::exact(w), bd = gpu::exact(b),
             dyd = gpu::exact(dy);
  std::vector<double> y(dy.size()), dx(x.size()), dw = gpu::exact(dw_before),
                                                  dbias = gpu::exact(dbias_before);
  stream on;
  std::vector<double> space(
    static_cast<std::size_t>(convolution<double>::scratch(dims, on.threads())));
  convolution<double>::forward(dims, xd.data(), wd.data(), bd.data(), y.data(),
                               space.data(), on);
  convolution<double>::input_gradient(dims, wd.data(), dyd.data(), dx.data(),
                                      space.data(), on);
  convolution<double>::weight_gradient(dims, xd.data(), dyd.data(), adds ? 1 : 0,
                                       dw.data(), dbias.data(), space.data(), on);
  CHECK(relative_difference(made[0], y) < gpu::near_fp32);
  CHECK(relative_difference(made[1], dx) < gpu::near_fp32);
  CHECK(relative_difference(made[2], dw) < gpu::near_fp32);
  CHECK(relative_difference(made[3], dbias) < gpu::near_fp32);
}

TEST_CASE("a GPU pools what a ReLU leaves as the CPU does", "[cuda]") {
  GPU_OR_SKIP();
  const auto stored = GENERATE(precision::fp32, precision::bf16);
  const auto [P, H, W] = GENERATE(table<std::int64_t, std::int64_t, std::int64_t>(
    {{1, 2, 2}, {3, 4, 6}, {7, 24, 24}, {2, 2, 10}}));
  CAPTURE(P, H, W, stored == precision::bf16);
  const relu_pool<float>::shape dims{P, H, W};
  auto x = random_values<float>(P * H * W, 1);
  for (std::size_t i = 0; i < x.size(); i += 3)
    x[i] = i % 2 == 0 ? 0.0F : 1.0F; // ties
  const auto dy = gpu::rounded(random_values<float>(P * H * W / 4, 2), stored);
  const gpu::stored_array::size half{P * H / 2, W / 2};
  const auto made = gpu::in_every_order([&, P = P, H = H, W = W] {
    const gpu::array<float> gx{"x", x}, dx{"dx", P * H * W};
    const gpu::stored_array y{"y", half, stored}, gdy{"dy", dy, half, stored};
    const gpu::array<std::uint8_t> choice{"choice", P * H * W / 4};
    cuda::relu_pool::forward(dims, gx.data(), y.out(), choice.data(), nullptr);
    cuda::relu_pool::backward(dims, gdy.in(), choice.data(), dx.data(), nullptr);
    gpu::wait();
    const auto chosen = choice.values();
    return gpu::results{y.values(), {chosen.begin(), chosen.end()}, dx.values()};
  });
  std::vector<float> y(dy.size()), dx(x.size());
  std::vector<std::uint8_t> choice(dy.size());
  stream on;
  relu_pool<float>::forward(dims, x.data(), dense(y.data(), half.rows, half.columns),
                            choice.data(), on);
  relu_pool<float>::backward(dims, dense(dy.data(), half.rows, half.columns),
                             choice.data(), dx.data(), on);
  CHECK(made[0] == gpu::rounded(y, stored));
  CHECK(made[1] == std::vector<float>(choice.begin(), choice.end()));
  CHECK(made[2] == dx);
}

} // namespace troupe::images_test
