// SPDX-License-Identifier: BSD-3-Clause
// Every epilogue compared with the formula, written plainly in double.

#include "kernels/epilogue.hpp"

#include "kernels/matmul.hpp"
#include "tests/kernels/numbers.hpp"
#include "tests/tries.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

namespace troupe::epilogue_test {

namespace {

/// Sizes of a product: c (M, N) and the other operands are in arrays `gap` values
/// wider.
struct product_shape {
  std::int64_t m, n, k;
  bool ta, tb;
  double beta;
  std::int64_t gap = 3;
};

constexpr epilogue_kind all_kinds[] = {
  epilogue_kind::none,      epilogue_kind::bias,          epilogue_kind::bias_gelu,
  epilogue_kind::bias_relu, epilogue_kind::bias_residual, epilogue_kind::gelu_gradient};

/// The operands of a product, and the results.
template <class Scalar>
struct operands {
  operands(const product_shape& d, epilogue_kind what)
    : dims(d),
      a(random_values<Scalar>(d.m * d.k, 1)),
      b(random_values<Scalar>(d.k * d.n, 2)),
      c(random_values<Scalar>(d.m * (d.n + d.gap), 3)),
      bias(random_values<Scalar>(d.n, 4)),
      x(random_values<Scalar>(d.m * (d.n + d.gap), 5)),
      y(c.size(), 7),
      mask(c.size(), 7) {
    end.kind = what;
    end.bias = bias.data();
    end.x = view(x.data());
    end.y = view(y.data());
    end.mask = view(mask.data());
  }

  template <class Value>
  matrix<Value> view(Value* data) const {
    return {data, dims.m, dims.n, dims.n + dims.gap};
  }

  void multiply(int threads, precision products = precision::fp32) {
    const auto left =
      dims.ta ? dense(a.data(), dims.k, dims.m).t() : dense(a.data(), dims.m, dims.k);
    const auto right =
      dims.tb ? dense(b.data(), dims.n, dims.k).t() : dense(b.data(), dims.k, dims.n);
    stream on{threads, products};
    matmul<Scalar>(left, right, static_cast<Scalar>(dims.beta), view(c.data()), on,
                   end);
  }

  product_shape dims;
  std::vector<Scalar> a, b, c, bias, x, y;
  std::vector<std::uint8_t> mask;
  epilogue<Scalar> end;
};

double gelu_of(double x) {
  return x / 2 * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
}

double gelu_derivative(double x) {
  const double t = std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x));
  return (1 + t) / 2
         + x / 2 * (1 - t * t) * std::sqrt(2 / M_PI) * (1 + 3 * 0.044715 * x * x);
}

/// The table of epilogue.hpp, element by element. Sums of the product are not divided,
/// and so are about sqrt(K) large.
void multiply_by_definition(operands<double>& o) {
  const auto& d = o.dims;
  const auto at = [](std::int64_t i) { return static_cast<std::size_t>(i); };
  for (std::int64_t i = 0; i < d.m; ++i)
    for (std::int64_t j = 0; j < d.n; ++j) {
      const auto here = at(i * (d.n + d.gap) + j);
      double s = d.beta * o.c[here];
      for (std::int64_t k = 0; k < d.k; ++k)
        s += o.a[at(d.ta ? k * d.m + i : i * d.k + k)]
             * o.b[at(d.tb ? j * d.k + k : k * d.n + j)];
      const double with_bias = s + o.bias[at(j)];
      switch (o.end.kind) {
      case epilogue_kind::none:
        o.c[here] = s;
        break;
      case epilogue_kind::bias:
        o.c[here] = with_bias;
        break;
      case epilogue_kind::bias_gelu:
        o.c[here] = gelu_derivative(with_bias);
        o.y[here] = gelu_of(with_bias);
        break;
      case epilogue_kind::bias_relu:
        o.c[here] = with_bias > 0 ? with_bias : 0;
        o.mask[here] = with_bias > 0;
        break;
      case epilogue_kind::bias_residual:
        o.c[here] = with_bias + o.x[here];
        break;
      case epilogue_kind::gelu_gradient:
        o.c[here] = s * o.x[here];
        break;
      }
    }
}

/// GELU's slope is expected at the sums that a product of fp32 or bf16 has made; the
/// sums have an expectation of their own.
void expect_slopes_of_made_sums(operands<double>& expected, precision products) {
  if (expected.end.kind != epilogue_kind::bias_gelu)
    return;
  const auto& d = expected.dims;
  operands<float> sums{d, epilogue_kind::bias};
  sums.multiply(1, products);
  for (std::int64_t i = 0; i < d.m; ++i)
    for (std::int64_t j = 0; j < d.n; ++j) {
      const auto here = static_cast<std::size_t>(i * (d.n + d.gap) + j);
      expected.c[here] = gelu_derivative(static_cast<double>(sums.c[here]));
    }
}

} // namespace

TEST_CASE("each epilogue is its formula, for odd shapes and transposed operands",
          "[epilogue]") {
  const bool ta = GENERATE(false, true), tb = GENERATE(false, true);
  const double beta = GENERATE(0.0, 1.0);
  for (const auto& [m, n, k] :
       {std::tuple{1, 1, 1}, {3, 5, 7}, {131, 37, 33}, {17, 300, 20}, {5, 259, 1100}})
    for (const auto what : all_kinds) {
      if (!tests::tries(9, {std::to_string(m), std::to_string(static_cast<int>(what)),
                            ta ? "transposed" : "", tb ? "transposed" : "",
                            std::to_string(beta)}))
        continue;
      const product_shape dims{m, n, k, ta, tb, beta};
      operands<double> expected{dims, what}, exact{dims, what};
      operands<float> fast{dims, what};
      multiply_by_definition(expected);
      exact.multiply(1);
      fast.multiply(1);
      INFO("kind " << static_cast<int>(what) << ", " << m << " x " << n << " x " << k);
      CHECK(relative_difference(exact.c, expected.c) < 1e-13);
      CHECK(relative_difference(exact.y, expected.y) < 1e-13);
      CHECK(exact.mask == expected.mask);
      expect_slopes_of_made_sums(expected, precision::fp32);
      CHECK(relative_difference(fast.c, expected.c) < 1e-6);
      CHECK(relative_difference(fast.y, expected.y) < 1e-6);
      CHECK(fast.mask == expected.mask);
    }
}

TEST_CASE("each epilogue is its formula behind a product of bf16", "[epilogue][bf16]") {
  const bool ta = GENERATE(false, true);
  for (const auto& [m, n, k] :
       {std::tuple{3, 5, 7}, {17, 300, 20}, {5, 259, 1100}, {300, 40, 33}})
    for (const auto what : all_kinds) {
      const product_shape dims{m, n, k, ta, false, 1};
      operands<double> expected{dims, what};
      for (auto* const array : {&expected.a, &expected.b})
        for (auto& x : *array)
          x = fp32_of(bf16_of(static_cast<float>(x)));
      operands<float> fast{dims, what};
      multiply_by_definition(expected);
      expect_slopes_of_made_sums(expected, precision::bf16);
      fast.multiply(1, precision::bf16);
      INFO("kind " << static_cast<int>(what) << ", " << m << " x " << n << " x " << k);
      CHECK(relative_difference(fast.c, expected.c) < 1e-6);
      CHECK(relative_difference(fast.y, expected.y) < 1e-6);
      CHECK(fast.mask == expected.mask);
    }
}

TEST_CASE("an epilogue has the same bits on any number of threads", "[epilogue]") {
  const bool ta = GENERATE(false, true), tb = GENERATE(false, true);
  // By columns, by rows; deeper than one block.
  for (const auto& [m, n, k] :
       {std::tuple{101, 700, 600}, {700, 90, 513}, {300, 600, 64}})
    for (const auto what : all_kinds) {
      if (!tests::tries(9, {std::to_string(m), std::to_string(static_cast<int>(what)),
                            ta ? "transposed" : "", tb ? "transposed" : ""}))
        continue;
      const product_shape dims{m, n, k, ta, tb, 0};
      operands<float> alone{dims, what};
      alone.multiply(1);
      for (const int threads : {2, 3}) {
        operands<float> together{dims, what};
        together.multiply(threads);
        INFO("kind " << static_cast<int>(what) << ", " << threads << " threads");
        CHECK(together.c == alone.c);
        CHECK(together.y == alone.y);
        CHECK(together.mask == alone.mask);
      }
    }
}

TEST_CASE("each element is finished once, wherever the product is cut", "[epilogue]") {
  const int threads = GENERATE(1, 2, 4);
  operands<float> o{{300, 600, 1100, false, true, 0}, epilogue_kind::bias_residual};
  o.a.assign(o.a.size(), 0); // so that the sum is exact
  const auto before = o.c;
  o.multiply(threads);
  std::int64_t wrong = 0;
  for (std::int64_t i = 0; i < o.dims.m; ++i)
    for (std::int64_t j = 0; j < o.dims.n + o.dims.gap; ++j) {
      const auto here = static_cast<std::size_t>(i * (o.dims.n + o.dims.gap) + j);
      const bool outside = j >= o.dims.n;
      wrong +=
        o.c[here]
        != (outside ? before[here] : o.bias[static_cast<std::size_t>(j)] + o.x[here]);
    }
  CHECK(wrong == 0);
}

} // namespace troupe::epilogue_test
