// SPDX-License-Identifier: BSD-3-Clause
// Products of values that are stored as bf16, and rows that become bf16.

#include "kernels/matmul.hpp"
#include "tests/kernels/bf16_values.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include <bit>
#include <stdexcept>

namespace troupe::stored_products_test {

TEST_CASE("rows are rounded and widened as their values are", "[bf16]") {
  dice random{4};
  for (int n = 0; n < 100; ++n) {
    std::vector<float> values(static_cast<std::size_t>(n));
    for (auto& x : values)
      x = any_float(random);
    std::vector<bf16> rows(values.size() + 1, bf16{7});
    round_row(values.data(), n, rows.data());
    std::vector<float> wide(rows.size(), 9);
    widen_row(rows.data(), n, wide.data());
    CHECK(rows.back().bits == 7);
    CHECK(wide.back() == 9);
    for (std::size_t i = 0; i < values.size(); ++i) {
      REQUIRE(rows[i].bits == bf16_of(values[i]));
      REQUIRE(std::bit_cast<std::uint32_t>(wide[i])
              == static_cast<std::uint32_t>(rows[i].bits) << 16U);
    }
  }
}

TEST_CASE("products of stored bf16 are those of fp32 that is rounded", "[bf16]") {
  const bool ta = GENERATE(false, true), tb = GENERATE(false, true);
  const int threads = GENERATE(1, 3);
  for (const auto& [m, n, k] : sizes) {
    const auto a = random_values<float>(m * k, 1), b = random_values<float>(k * n, 2),
               bias = random_values<float>(n, 3),
               x = rounded(random_values<float>(m * n, 4));
    const auto half_a = stored(a), half_b = stored(b), half_x = stored(x);
    stream on{threads, precision::bf16};
    for (const auto what :
         {epilogue_kind::none, epilogue_kind::bias_gelu, epilogue_kind::bias_residual,
          epilogue_kind::gelu_gradient}) {
      const auto multiply_into = [&, m = m, n = n, k = k](const auto& left,
                                                          const auto& right, auto& c,
                                                          auto& y, const auto& third) {
        matmul<float>(ta ? dense(left.data(), k, m).t() : dense(left.data(), m, k),
                      tb ? dense(right.data(), n, k).t() : dense(right.data(), k, n), 0,
                      dense(c.data(), m, n), on,
                      {.kind = what,
                       .bias = bias.data(),
                       .x = dense(third.data(), m, n),
                       .y = dense(y.data(), m, n)});
      };
      std::vector<float> exact(x.size()), exact_y(x.size());
      multiply_into(a, b, exact, exact_y, x);
      std::vector<bf16> c(x.size()), y(x.size());
      multiply_into(half_a, half_b, c, y, half_x);
      REQUIRE((bits_of(c) == bits_of(stored(exact))));
      REQUIRE((bits_of(y) == bits_of(stored(exact_y))));
      multiply_into(a, half_b, c, y, x); // any of the operands may be fp32 or bf16
      REQUIRE((bits_of(c) == bits_of(stored(exact))));
    }
  }
}

TEST_CASE("nothing is added to a product that is stored as bf16", "[bf16]") {
  const std::vector<float> a{1}, b{1};
  std::vector<bf16> c(1);
  const auto one = dense(a.data(), 1, 1), other = dense(b.data(), 1, 1);
  CHECK_THROWS_AS(
    multiply<float>(precision::bf16, one, other, 1, 1, dense(c.data(), 1, 1)),
    std::logic_error);
  CHECK_THROWS_AS(
    multiply<float>(precision::fp32, one, other, 1, 0, dense(c.data(), 1, 1)),
    std::logic_error);
}

} // namespace troupe::stored_products_test
