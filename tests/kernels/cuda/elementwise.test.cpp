// SPDX-License-Identifier: BSD-3-Clause
// A GPU's computations value by value, compared with the CPU's in double.

#include "kernels/bias.hpp"
#include "kernels/cuda/kernels.hpp"
#include "kernels/epilogue.hpp"
#include "kernels/relu.hpp"
#include "kernels/vector_math.hpp"
#include "tests/kernels/cuda/judge.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/generators/catch_generators_range.hpp>

namespace troupe::elementwise_test {

using gpu::stored_array;

namespace {

/// Sizes that packs fit, and sizes that packs do not fit.
const std::vector<stored_array::size> sizes{{1, 1},      {3, 7, 2},   {6, 64, 8},
                                            {9, 104, 1}, {37, 33, 1}, {2, 1024},
                                            {2050, 9},   {600, 136}};

std::vector<std::uint8_t> random_mask(std::int64_t n, unsigned seed) {
  std::vector<std::uint8_t> result;
  for (const auto v : random_labels(n, 2, seed))
    result.push_back(static_cast<std::uint8_t>(v));
  return result;
}

} // namespace

TEST_CASE("a GPU copies, adds and clears values", "[cuda]") {
  GPU_OR_SKIP();
  const auto from_stored = GENERATE(precision::fp32, precision::bf16),
             to_stored = GENERATE(precision::fp32, precision::bf16);
  const auto dims = GENERATE(from_range(sizes));
  CAPTURE(dims.rows, dims.columns, dims.gap);
  const auto n = dims.rows * dims.columns;
  const auto values = gpu::rounded(random_values<float>(n, 1), from_stored),
             before = random_values<float>(n, 2);
  const auto made = gpu::in_every_order([&] {
    const stored_array from{"from", values, dims, from_stored},
      to{"to", dims, to_stored};
    const gpu::array<float> flat{"flat", values}, sum{"sum", before, gpu::use::updated},
      zeros{"zeros", n};
    cuda::arrays::copy(from.in(), to.out(), nullptr);
    cuda::arrays::add(flat.data(), n, sum.data(), nullptr);
    cuda::arrays::clear(n, zeros.data(), nullptr);
    gpu::wait();
    return gpu::results{to.values(), sum.values(), zeros.values()};
  });
  CHECK(made[0] == gpu::rounded(values, to_stored));
  for (std::size_t i = 0; i < values.size(); ++i)
    CHECK(made[1][i] == values[i] + before[i]);
  CHECK(made[2] == std::vector<float>(values.size()));
}

TEST_CASE("a GPU adds biases with residuals, and sums their gradients", "[cuda]") {
  GPU_OR_SKIP();
  const auto stored = GENERATE(precision::fp32, precision::bf16);
  const auto dims = GENERATE(from_range(sizes));
  const bool adds = GENERATE(false, true);
  CAPTURE(dims.rows, dims.columns, dims.gap, adds, stored == precision::bf16);
  const auto R = dims.rows, C = dims.columns;
  const auto product = random_values<float>(R * C, 1), b = random_values<float>(C, 2),
             x = gpu::rounded(random_values<float>(R * C, 3), stored),
             before = random_values<float>(C, 4);
  const auto made = gpu::in_every_order([&] {
    const stored_array sums{"product", product, dims, precision::fp32},
      residual{"x", x, dims, stored}, y{"y", dims, stored};
    const gpu::array<float> offsets{"bias", b};
    const auto dbias = gpu::sum_of("dbias", before, adds);
    cuda::bias::add_with_residual(sums.in().plain(), offsets.data(), residual.in(),
                                  y.out(), nullptr);
    const gpu::array<float> space{"space", cuda::column_sums::space(R, C, 1)};
    cuda::bias::gradient(residual.in(), adds ? 1.0F : 0.0F, dbias->data(), space.data(),
                         nullptr);
    gpu::wait();
    return gpu::results{y.values(), dbias->values()};
  });
  const auto sums = gpu::exact(product), bd = gpu::exact(b), xd = gpu::exact(x);
  std::vector<double> y(sums.size()), dbias = gpu::exact(before);
  stream on;
  bias<double>::add_with_residual(dense(sums.data(), R, C), bd.data(),
                                  dense(xd.data(), R, C), dense(y.data(), R, C), on);
  bias<double>::gradient(dense(xd.data(), R, C), adds ? 1 : 0, dbias.data(), on);
  CHECK(relative_difference(made[0], y) < gpu::near(stored));
  CHECK(relative_difference(made[1], dbias) < gpu::near_fp32);
}

TEST_CASE("a GPU's ReLU passes gradients as the CPU's", "[cuda]") {
  GPU_OR_SKIP();
  const auto dims = GENERATE(from_range(sizes));
  CAPTURE(dims.rows, dims.columns, dims.gap);
  const auto R = dims.rows, C = dims.columns;
  const auto dy = random_values<float>(R * C, 2);
  const auto mask = random_mask(R * C, 3);
  const auto stored = GENERATE(precision::fp32, precision::bf16);
  const auto made = gpu::in_every_order([&] {
    const stored_array upper{"dy", dy, dims, stored}, dx{"dx", dims, stored};
    const gpu::array<std::uint8_t> passes{"mask", mask};
    cuda::relu::backward(upper.in(), dense<const std::uint8_t>(passes.data(), R, C),
                         dx.out(), nullptr);
    gpu::wait();
    return gpu::results{dx.values()};
  });
  auto passed = gpu::rounded(dy, stored);
  for (std::size_t i = 0; i < passed.size(); ++i)
    passed[i] = mask[i] == 1 ? passed[i] : 0;
  CHECK(made[0] == passed);
}

TEST_CASE("what follows a product on a GPU is what follows it on the CPU", "[cuda]") {
  GPU_OR_SKIP();
  using kind = epilogue_kind;
  const auto what = GENERATE(kind::none, kind::bias, kind::bias_gelu, kind::bias_relu,
                             kind::bias_residual, kind::gelu_gradient);
  const auto stored = GENERATE(precision::fp32, precision::bf16);
  const auto dims = GENERATE(from_range(sizes));
  CAPTURE(static_cast<int>(what), dims.rows, dims.columns, stored == precision::bf16);
  const auto R = dims.rows, C = dims.columns;
  const auto product = random_values<float>(R * C, 1), b = random_values<float>(C, 2),
             x = gpu::rounded(random_values<float>(R * C, 3), stored);
  const bool has_bias = what != kind::none && what != kind::gelu_gradient;
  const bool has_x = what == kind::bias_residual || what == kind::gelu_gradient;
  const auto made = gpu::in_every_order([&] {
    const stored_array sums{"product", product, dims, precision::fp32},
      gx{"x", x, dims, stored}, y{"y", dims, stored}, c{"c", dims, stored};
    const gpu::array<float> offsets{"bias", b};
    const gpu::array<std::uint8_t> mask{"mask", R * C};
    epilogue<float> end;
    end.kind = what;
    if (has_bias)
      end.bias = offsets.data();
    if (has_x)
      end.x = gx.in();
    if (what == kind::bias_gelu)
      end.y = y.out();
    if (what == kind::bias_relu)
      end.mask = dense(mask.data(), R, C);
    cuda::epilogues::finish(sums.in().plain(), end, c.out(), nullptr);
    gpu::wait();
    return gpu::results{
      c.values(), what == kind::bias_gelu ? y.values() : std::vector<float>{},
      what == kind::bias_relu ? gpu::as_floats(mask.values()) : std::vector<float>{}};
  });
  auto c = gpu::exact(product), xd = gpu::exact(x);
  const auto bd = gpu::exact(b);
  std::vector<double> y(c.size());
  std::vector<std::uint8_t> mask(c.size());
  epilogue<double> end;
  end.kind = what;
  end.bias = bd.data();
  end.x = dense(xd.data(), R, C);
  end.y = dense(y.data(), R, C);
  end.mask = dense(mask.data(), R, C);
  if (what == kind::bias_gelu) {
    auto slopes = c;
    end.finish(dense(slopes.data(), R, C), 0, 0);
    CHECK(relative_difference(made[1], y) < gpu::near(stored));
    end.kind = kind::bias; // a GPU keeps the GELU's inputs
  }
  if (what == kind::gelu_gradient)
    for (auto& value : xd)
      value = gelu_and_slope(value).slope;
  end.finish(dense(c.data(), R, C), 0, 0);
  CHECK(relative_difference(made[0], c) < gpu::near(stored));
  if (what == kind::bias_relu)
    CHECK(made[2] == gpu::as_floats(mask));
}

} // namespace troupe::elementwise_test
