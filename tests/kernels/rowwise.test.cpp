// SPDX-License-Identifier: BSD-3-Clause
// Kernels that treat rows or values one by one: bias, ReLU, GELU, layer norm,
// embedding.

#include "kernels/bias.hpp"
#include "kernels/embedding.hpp"
#include "kernels/layer_norm.hpp"
#include "kernels/relu.hpp"
#include "kernels/vector_math.hpp"
#include "tests/kernels/numbers.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include <limits>

namespace troupe::rowwise_test {

TEST_CASE("the fast exponential is exact to a few units in the last place", "[exp]") {
  double worst = 0;
  for (float x = -87; x < 88; x += 0.00173F) {
    const double exact = std::exp(static_cast<double>(x));
    worst = std::max(worst, std::abs(static_cast<double>(fast_exp(x)) / exact - 1));
  }
  CHECK(worst < 2.5e-7);
  CHECK(fast_exp(0.0F) == 1.0F);
  CHECK(fast_exp(-1000.0F) == 0.0F);
  CHECK(fast_exp(-std::numeric_limits<float>::infinity()) == 0.0F);
  CHECK(std::isfinite(fast_exp(1000.0F)));
  CHECK(std::isnan(fast_exp(std::numeric_limits<float>::quiet_NaN())));
}

TEST_CASE("GELU is GPT-2's, and its slope that of finite differences", "[gelu]") {
  std::vector<double> x;
  for (double v = -12; v <= 12; v += 0.03)
    x.push_back(v);
  std::vector<double> y(x.size()), slope(x.size());
  const auto dy = random_values<double>(std::ssize(x), 1);
  for (std::size_t i = 0; i < x.size(); ++i) {
    const auto at = gelu_and_slope(x[i]);
    y[i] = at.value;
    slope[i] = at.slope;
    const double inner = std::sqrt(2 / M_PI) * (x[i] + 0.044715 * std::pow(x[i], 3));
    CHECK(std::abs(y[i] - x[i] / 2 * (1 + std::tanh(inner))) < 1e-12);
  }
  const auto loss = [&](const std::vector<double>& at) {
    std::vector<double> values;
    for (const double v : at)
      values.push_back(gelu_and_slope(v).value);
    return dot(values, dy);
  };
  std::vector<double> dx(x.size());
  for (std::size_t i = 0; i < x.size(); ++i)
    dx[i] = dy[i] * slope[i];
  CHECK(relative_difference(dx, finite_differences(loss, x)) < 1e-8);
  std::vector<float> rounded_y, rounded_slope;
  for (const double v : x) {
    const auto at = gelu_and_slope(static_cast<float>(v));
    rounded_y.push_back(at.value);
    rounded_slope.push_back(at.slope);
  }
  CHECK(relative_difference(rounded_y, y) < 1e-6);
  CHECK(relative_difference(rounded_slope, slope) < 1e-6);
}

TEST_CASE("ReLU passes gradients where it passed values", "[relu]") {
  const std::vector<std::uint8_t> mask{0, 0, 1, 0, 1};
  std::vector<float> dy{1, 2, 3, 4, 5};
  stream on;
  relu<float>::backward(dense<const float>(dy.data(), 1, 5),
                        dense<const std::uint8_t>(mask.data(), 1, 5),
                        dense(dy.data(), 1, 5), on);
  CHECK(dy == std::vector<float>{0, 0, 3, 0, 5});
}

TEST_CASE("a bias is added with a residual, and its gradient sums rows", "[bias]") {
  const std::vector<float> sums{11, 22, 13, 24}, b{10, 20}, x{100, 200, 300, 400};
  std::vector<float> y(4);
  stream on;
  bias<float>::add_with_residual(dense(sums.data(), 2, 2), b.data(),
                                 dense(x.data(), 2, 2), dense(y.data(), 2, 2), on);
  CHECK(y == std::vector<float>{121, 242, 323, 444});
  std::vector<float> sum{5, 5};
  bias<float>::gradient(dense(x.data(), 2, 2), 1, sum.data(), on);
  CHECK(sum == std::vector<float>{405, 605});
  bias<float>::gradient(dense(x.data(), 2, 2), 0, sum.data(), on);
  CHECK(sum == std::vector<float>{400, 600});
}

TEST_CASE("sums over rows have the same bits on any number of threads", "[bias]") {
  const auto dy = random_values<float>(257 * 300, 1);
  std::vector<float> alone(300), together(300);
  stream one{1}, three{3};
  bias<float>::gradient(dense(dy.data(), 257, 300), 0, alone.data(), one);
  bias<float>::gradient(dense(dy.data(), 257, 300), 0, together.data(), three);
  CHECK(alone == together);
}

namespace {

constexpr std::int64_t R = 5, C = 12;

/// All results of a layer norm on random inputs.
template <class Scalar>
struct normed {
  std::vector<Scalar> x = random_values<Scalar>(R * C, 1),
                      gain = random_values<Scalar>(C, 2),
                      bias = random_values<Scalar>(C, 3),
                      dy = random_values<Scalar>(R * C, 4);
  std::vector<Scalar> y = std::vector<Scalar>(R * C), dx = y;
  std::vector<Scalar> mean = std::vector<Scalar>(R), rstd = mean;
  std::vector<Scalar> dgain = std::vector<Scalar>(C), dbias = dgain;
  stream on;

  Scalar forward() {
    layer_norm<Scalar>::forward(dense(x.data(), R, C), gain.data(), bias.data(),
                                dense(y.data(), R, C), mean.data(), rstd.data(), on);
    return static_cast<Scalar>(dot(y, dy));
  }

  void backward(const Scalar* residual = nullptr) {
    layer_norm<Scalar>::input_gradient(
      dense(x.data(), R, C), gain.data(), mean.data(), rstd.data(),
      dense(dy.data(), R, C), dense(residual, R, C), dense(dx.data(), R, C), on);
    layer_norm<Scalar>::weight_gradient(dense(x.data(), R, C), mean.data(), rstd.data(),
                                        dense(dy.data(), R, C), 0, dgain.data(),
                                        dbias.data(), on);
  }
};

} // namespace

TEST_CASE("a layer norm has mean 0 and variance 1 before gain and bias",
          "[layer_norm]") {
  normed<double> n;
  n.gain.assign(C, 1);
  n.bias.assign(C, 0);
  n.forward();
  for (std::int64_t r = 0; r < R; ++r) {
    double sum = 0, squares = 0;
    for (std::int64_t c = 0; c < C; ++c) {
      sum += n.y[static_cast<std::size_t>(r * C + c)];
      squares += std::pow(n.y[static_cast<std::size_t>(r * C + c)], 2);
    }
    CHECK(std::abs(sum) < 1e-12);
    CHECK(std::abs(squares / C - 1) < 1e-3);
  }
}

TEST_CASE("a layer norm is PyTorch's, of rows that hardly vary too", "[layer_norm]") {
  const double spread = GENERATE(1.0, 0.003);
  normed<double> n;
  for (auto& value : n.x)
    value = 5 + spread * value;
  n.forward();
  for (std::size_t r = 0; r < R; ++r) {
    double mean = 0, variance = 0;
    for (std::size_t c = 0; c < C; ++c)
      mean += n.x[r * C + c] / C;
    for (std::size_t c = 0; c < C; ++c)
      variance += std::pow(n.x[r * C + c] - mean, 2) / C;
    for (std::size_t c = 0; c < C; ++c) {
      const double y = (n.x[r * C + c] - mean) / std::sqrt(variance + 1e-5);
      CHECK(std::abs(n.y[r * C + c] - (y * n.gain[c] + n.bias[c])) < 1e-10);
    }
  }
}

TEST_CASE("layer norm's gradients are those of finite differences", "[layer_norm]") {
  normed<double> n;
  n.forward();
  n.backward();
  const auto with = [](std::vector<double> normed<double>::*what) {
    return [what](const std::vector<double>& values) {
      normed<double> other;
      other.*what = values;
      return other.forward();
    };
  };
  CHECK(relative_difference(n.dx, finite_differences(with(&normed<double>::x), n.x))
        < 1e-7);
  CHECK(relative_difference(n.dgain,
                            finite_differences(with(&normed<double>::gain), n.gain))
        < 1e-7);
  CHECK(relative_difference(n.dbias,
                            finite_differences(with(&normed<double>::bias), n.bias))
        < 1e-7);
}

TEST_CASE("a residual gradient is added to that through the norm", "[layer_norm]") {
  normed<double> plain, added;
  const auto residual = random_values<double>(R * C, 9);
  plain.forward();
  plain.backward();
  added.forward();
  added.backward(residual.data());
  for (std::size_t i = 0; i < plain.dx.size(); ++i)
    CHECK(std::abs(added.dx[i] - plain.dx[i] - residual[i]) < 1e-12);
}

TEST_CASE("layer norm in float agrees with double", "[layer_norm]") {
  normed<float> fast;
  normed<double> exact;
  fast.forward();
  fast.backward();
  exact.forward();
  exact.backward();
  CHECK(relative_difference(fast.y, exact.y) < 1e-6);
  CHECK(relative_difference(fast.dx, exact.dx) < 1e-5);
  CHECK(relative_difference(fast.dgain, exact.dgain) < 1e-6);
}

TEST_CASE("an embedding adds the word and the place, and its gradient finds them",
          "[embedding]") {
  constexpr std::int64_t B = 2, T = 3, width = 4, V = 5;
  const embedding<double>::shape dims{B, T, width, V, 0, GENERATE(false, true)};
  const std::vector<std::int32_t> tokens{0, 4, 4, 2, 0, 1};
  const auto words = random_values<double>(V * width, 1);
  const auto places = random_values<double>(T * width, 2);
  const auto dy = random_values<double>(B * T * width, 3);
  stream on{GENERATE(1, 2)};
  const auto loss = [&](const std::vector<double>& w, const std::vector<double>& p) {
    std::vector<double> y(dy.size());
    embedding<double>::forward(dims, tokens.data(), dense(w.data(), V, width),
                               dense(p.data(), T, width), dense(y.data(), B * T, width),
                               on);
    return dot(y, dy);
  };
  std::vector<double> dwords(words.size(), 99), dplaces(places.size(), 99);
  const auto upper = dense(dy.data(), B * T, width);
  embedding<double>::gradient(dims, tokens.data(), upper, 0, dwords.data(),
                              dplaces.data(), on);
  CHECK(relative_difference(
          dwords, finite_differences([&](auto& w) { return loss(w, places); }, words))
        < 1e-8);
  CHECK(relative_difference(
          dplaces, finite_differences([&](auto& p) { return loss(words, p); }, places))
        < 1e-8);
  auto twice = dwords;
  embedding<double>::gradient(dims, tokens.data(), upper, 1, twice.data(),
                              dplaces.data(), on);
  for (std::size_t i = 0; i < twice.size(); ++i)
    CHECK(std::abs(twice[i] - 2 * dwords[i]) < 1e-12);
}

} // namespace troupe::rowwise_test
