// SPDX-License-Identifier: BSD-3-Clause
// A GPU's updates, compared with the papers' formulas in double.

#include "kernels/optimizers.hpp"

#include "kernels/cuda/kernels.hpp"
#include "tests/kernels/cuda/judge.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include <cmath>

namespace troupe::optimizers_test {

namespace {

std::vector<float> absolute(std::vector<float> values) {
  for (auto& v : values)
    v = std::abs(v);
  return values;
}

} // namespace

TEST_CASE("a GPU's AdamW is Loshchilov and Hutter's", "[cuda]") {
  GPU_OR_SKIP();
  const std::int64_t n = GENERATE(1, 8, 77, 1024, 2500);
  const bool in_place = GENERATE(false, true);
  CAPTURE(n, in_place);
  const auto how = adamw_update::of(0.01, 0.9, 0.99, 1e-8, 0.1, 3);
  constexpr float scale = 0.25F;
  const auto g = random_values<float>(n, 1), w = random_values<float>(n, 2),
             m = random_values<float>(n, 3), v = absolute(random_values<float>(n, 4));
  const auto made = gpu::in_every_order([&] {
    const gpu::array<float> gradient{"gradient", g}, from{"from", w, gpu::use::updated},
      to{"to", n}, mean{"mean", m, gpu::use::updated},
      square{"square", v, gpu::use::updated};
    cuda::optimizers::update_values(how, scale,
                                    {gradient.data(),
                                     from.data(),
                                     in_place ? from.data() : to.data(),
                                     {mean.data(), square.data()}},
                                    n, nullptr);
    gpu::wait();
    return gpu::results{in_place ? from.values() : to.values(), mean.values(),
                        square.values()};
  });
  std::vector<double> to, mean, square;
  for (std::size_t i = 0; i < g.size(); ++i) {
    const double gi = static_cast<double>(g[i]) * 0.25;
    mean.push_back(0.9 * static_cast<double>(m[i]) + 0.1 * gi);
    square.push_back(0.99 * static_cast<double>(v[i]) + 0.01 * gi * gi);
    const double m_hat = mean.back() / (1 - std::pow(0.9, 3)),
                 v_hat = square.back() / (1 - std::pow(0.99, 3));
    to.push_back(
      static_cast<double>(w[i])
      - 0.01 * (m_hat / (std::sqrt(v_hat) + 1e-8) + 0.1 * static_cast<double>(w[i])));
  }
  CHECK(relative_difference(made[0], to) < 1e-6);
  CHECK(relative_difference(made[1], mean) < 1e-6);
  CHECK(relative_difference(made[2], square) < 1e-6);
}

TEST_CASE("a GPU's NAdam is Dozat's", "[cuda]") {
  GPU_OR_SKIP();
  const std::int64_t n = GENERATE(1, 8, 77, 1024);
  CAPTURE(n);
  const auto how = nadam_update::of(0.01, 0.9, 0.99, 1e-8, 0.1, 0.5, 3);
  const auto g = random_values<float>(n, 1), w = random_values<float>(n, 2),
             m = random_values<float>(n, 3), v = absolute(random_values<float>(n, 4));
  const auto made = gpu::in_every_order([&] {
    const gpu::array<float> gradient{"gradient", g}, from{"from", w}, to{"to", n},
      mean{"mean", m, gpu::use::updated}, square{"square", v, gpu::use::updated};
    cuda::optimizers::update_values(
      how, 0.25F,
      {gradient.data(), from.data(), to.data(), {mean.data(), square.data()}}, n,
      nullptr);
    gpu::wait();
    return gpu::results{to.values(), mean.values(), square.values()};
  });
  const auto mu = [](int t) { return 0.9 * (1 - std::pow(0.96, t * 0.5) / 2); };
  const double three = mu(1) * mu(2) * mu(3);
  std::vector<double> to, mean, square;
  for (std::size_t i = 0; i < g.size(); ++i) {
    const double gi = static_cast<double>(g[i]) * 0.25, wi = static_cast<double>(w[i]);
    mean.push_back(0.9 * static_cast<double>(m[i]) + 0.1 * gi);
    square.push_back(0.99 * static_cast<double>(v[i]) + 0.01 * gi * gi);
    const double ahead =
      (1 - mu(3)) / (1 - three) * gi + mu(4) / (1 - three * mu(4)) * mean.back();
    to.push_back(
      wi
      - 0.01
          * (ahead / (std::sqrt(square.back() / (1 - std::pow(0.99, 3))) + 1e-8)
             + 0.1 * wi));
  }
  CHECK(relative_difference(made[0], to) < 1e-6);
  CHECK(relative_difference(made[1], mean) < 1e-6);
  CHECK(relative_difference(made[2], square) < 1e-6);
}

TEST_CASE("a GPU's SGD is PyTorch's, with momentum and without", "[cuda]") {
  GPU_OR_SKIP();
  const std::int64_t n = GENERATE(1, 8, 77, 1024);
  const double momentum = GENERATE(0.0, 0.9);
  CAPTURE(n, momentum);
  const auto how = momentum > 0 ? value_update{momentum_update{0.1F, 0.01F, 0.9F}}
                                : value_update{sgd_update{0.1F, 0.01F}};
  const auto g = random_values<float>(n, 1), w = random_values<float>(n, 2),
             u = random_values<float>(n, 3);
  const auto made = gpu::in_every_order([&] {
    const gpu::array<float> gradient{"gradient", g}, from{"from", w}, to{"to", n},
      velocity{"velocity", u, gpu::use::updated};
    cuda::optimizers::update_values(how, 0.5F,
                                    {gradient.data(),
                                     from.data(),
                                     to.data(),
                                     {momentum > 0 ? velocity.data() : nullptr}},
                                    n, nullptr);
    gpu::wait();
    return gpu::results{to.values(), velocity.values()};
  });
  std::vector<double> to, velocity;
  for (std::size_t i = 0; i < g.size(); ++i) {
    const double gi =
      static_cast<double>(g[i]) * 0.5 + 0.01 * static_cast<double>(w[i]);
    velocity.push_back(momentum > 0 ? momentum * static_cast<double>(u[i]) + gi
                                    : static_cast<double>(u[i]));
    to.push_back(static_cast<double>(w[i])
                 - 0.1 * (momentum > 0 ? velocity.back() : gi));
  }
  CHECK(relative_difference(made[0], to) < 1e-6);
  CHECK(relative_difference(made[1], velocity) < 1e-6);
}

TEST_CASE("a GPU sums squares in double", "[cuda]") {
  GPU_OR_SKIP();
  const std::int64_t n = GENERATE(0, 1, 300, 4096, 4097, 20000);
  const auto x = random_values<float>(n, 1);
  const auto parts = cuda::optimizers::sum_parts(n);
  std::vector<double> sums;
  gpu::in_every_order([&] {
    const gpu::array<float> gx{"x", x};
    const gpu::array<double> partial{"partial", parts}, sum{"sum", 1};
    cuda::optimizers::sum_of_squares(gx.data(), n, partial.data(), sum.data(), nullptr);
    gpu::wait();
    sums.push_back(sum.values()[0]);
    return gpu::results{};
  });
  double plainly = 0;
  for (const auto v : x)
    plainly += static_cast<double>(v) * static_cast<double>(v);
  for (const auto sum : sums) {
    CHECK(std::abs(sum - plainly) <= 1e-13 * plainly);
    CHECK(sum == sums[0]);
  }
}

} // namespace troupe::optimizers_test
