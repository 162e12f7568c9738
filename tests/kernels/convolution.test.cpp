// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/convolution.hpp"

#include "kernels/relu_pool.hpp"
#include "tests/kernels/numbers.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/generators/catch_generators_range.hpp>

namespace troupe::convolution_test {

namespace {

// Shapes of images: without padding, with padding, and with more padding than image.
const std::vector<convolution_shape> all_shapes{{5, 2, 8, 7, 3, 3},
                                                {5, 2, 8, 7, 3, 3, 1},
                                                {5, 2, 6, 5, 3, 5, 2},
                                                {2, 1, 2, 1, 2, 5, 3}};

/// One convolution over random inputs, forward and backward.
template <class Scalar>
struct convolved {
  explicit convolved(const convolution_shape& shape, int threads = 1)
    : dims(shape),
      on(threads),
      space(static_cast<std::size_t>(convolution<Scalar>::scratch(dims, threads))) {
    // nop
  }

  double forward() {
    convolution<Scalar>::forward(dims, x.data(), w.data(), bias.data(), y.data(),
                                 space.data(), on);
    return dot(y, dy);
  }

  void backward(Scalar beta = 0) {
    convolution<Scalar>::input_gradient(dims, w.data(), dy.data(), dx.data(),
                                        space.data(), on);
    convolution<Scalar>::weight_gradient(dims, x.data(), dy.data(), beta, dw.data(),
                                         dbias.data(), space.data(), on);
  }

  convolution_shape dims;
  stream on;
  std::vector<Scalar> space;
  std::vector<Scalar> x = random_values<Scalar>(dims.images * dims.in_values(), 1),
                      w = random_values<Scalar>(dims.filters * dims.patch(), 2),
                      bias = random_values<Scalar>(dims.filters, 3),
                      dy = random_values<Scalar>(dims.images * dims.out_values(), 4);
  std::vector<Scalar> y = dy, dx = x, dw = w, dbias = bias;
};

} // namespace

TEST_CASE("a convolution is the sum over its window, whose padding is zero",
          "[convolution]") {
  const auto dims = GENERATE(from_range(all_shapes));
  convolved<double> c{dims};
  c.forward();
  const auto [N, C, H, W, O, K, P] = dims;
  std::size_t i = 0;
  for (std::int64_t n = 0; n < N; ++n)
    for (std::int64_t o = 0; o < O; ++o)
      for (std::int64_t h = 0; h < dims.out_height(); ++h)
        for (std::int64_t w = 0; w < dims.out_width(); ++w, ++i) {
          double sum = c.bias[static_cast<std::size_t>(o)];
          for (std::int64_t ch = 0; ch < C; ++ch)
            for (std::int64_t a = 0; a < K; ++a)
              for (std::int64_t b = 0; b < K; ++b) {
                const auto row = h + a - P, column = w + b - P;
                if (row < 0 || row >= H || column < 0 || column >= W)
                  continue;
                sum +=
                  c.x[static_cast<std::size_t>(((n * C + ch) * H + row) * W + column)]
                  * c.w[static_cast<std::size_t>(((o * C + ch) * K + a) * K + b)];
              }
          CHECK(std::abs(c.y[i] - sum) < 1e-12);
        }
}

TEST_CASE("a convolution's gradients are those of finite differences",
          "[convolution]") {
  const auto dims = GENERATE(from_range(all_shapes));
  convolved<double> c{dims};
  c.forward();
  c.backward();
  const auto with = [&](std::vector<double> convolved<double>::*what) {
    return [&dims, what](const std::vector<double>& values) {
      convolved<double> other{dims};
      other.*what = values;
      return other.forward();
    };
  };
  using conv = convolved<double>;
  CHECK(relative_difference(c.dx, finite_differences(with(&conv::x), c.x)) < 1e-7);
  CHECK(relative_difference(c.dw, finite_differences(with(&conv::w), c.w)) < 1e-7);
  CHECK(relative_difference(c.dbias, finite_differences(with(&conv::bias), c.bias))
        < 1e-7);
  const auto once = c.dw;
  c.backward(1);
  for (std::size_t i = 0; i < once.size(); ++i)
    CHECK(std::abs(c.dw[i] - 2 * once[i]) < 1e-12);
}

TEST_CASE("a convolution in float agrees with double, on any number of threads",
          "[convolution]") {
  const auto dims = GENERATE(from_range(all_shapes));
  convolved<float> fast{dims}, together{dims, 3};
  convolved<double> exact{dims};
  const auto pass = [](auto& c) {
    c.forward();
    c.backward();
  };
  pass(fast);
  pass(together);
  pass(exact);
  CHECK(relative_difference(fast.y, exact.y) < 1e-6);
  CHECK(relative_difference(fast.dx, exact.dx) < 1e-6);
  CHECK(relative_difference(fast.dw, exact.dw) < 1e-6);
  CHECK(fast.y == together.y);
  CHECK(fast.dx == together.dx);
  CHECK(fast.dw == together.dw);
  CHECK(fast.dbias == together.dbias);
}

TEST_CASE("pooling takes the largest of four, if it is above zero", "[relu_pool]") {
  const std::vector<double> x{1,  2,   -1, -2, //
                              -3, 0.5, -5, -6, //
                              9,  -1,  0,  3,  //
                              4,  -1,  1,  7};
  std::vector<double> y(4), dx(16, 99);
  std::vector<std::uint8_t> choice(4);
  stream on;
  relu_pool<double>::forward({1, 4, 4}, x.data(), dense(y.data(), 2, 2), choice.data(),
                             on);
  CHECK(y == std::vector<double>{2, 0, 9, 7});
  const std::vector<double> dy{10, 20, 30, 40};
  relu_pool<double>::backward({1, 4, 4}, dense(dy.data(), 2, 2), choice.data(),
                              dx.data(), on);
  CHECK(dx == std::vector<double>{0, 10, 0, 0, 0, 0, 0, 0, 30, 0, 0, 0, 0, 0, 0, 40});
}

TEST_CASE("of equal pixels the first is pooled, as PyTorch's max_pool2d does",
          "[relu_pool]") {
  const std::vector<double> x{-1, 2, 5, 5, //
                              2,  2, 5, 5};
  std::vector<double> y(2), dx(8);
  std::vector<std::uint8_t> choice(2);
  stream on;
  relu_pool<double>::forward({1, 2, 4}, x.data(), dense(y.data(), 1, 2), choice.data(),
                             on);
  CHECK(y == std::vector<double>{2, 5});
  const std::vector<double> dy{10, 20};
  relu_pool<double>::backward({1, 2, 4}, dense(dy.data(), 1, 2), choice.data(),
                              dx.data(), on);
  CHECK(dx == std::vector<double>{0, 10, 20, 0, 0, 0, 0, 0});
}

} // namespace troupe::convolution_test
