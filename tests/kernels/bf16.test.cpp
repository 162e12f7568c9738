// SPDX-License-Identifier: BSD-3-Clause
// Products of bf16: the rounding of values, the order of sums of each instruction set,
// and products of any size made of such blocks.

#include "kernels/bf16.hpp"

#include "kernels/bf16_block.hpp"
#include "kernels/bf16_gemm.hpp"
#include "kernels/bf16_pack.hpp"
#include "kernels/matmul.hpp"
#include "tests/kernels/bf16_values.hpp"
#include "tests/tries.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/generators/catch_generators_range.hpp>

#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <tuple>
#include <vector>

namespace troupe::bf16_test {

namespace {

/// The nearest value with seven bits of mantissa; of two equally near values the even
/// one. By the definition, in double precision.
double nearest(float x) {
  int exponent = 0;
  const double mantissa = std::frexp(static_cast<double>(x), &exponent); // 0.5 .. 1
  return std::ldexp(std::nearbyint(std::ldexp(mantissa, 8)), exponent - 8);
}

/// Packed values for a block, and the sums to which the block adds.
struct block_operands {
  std::vector<std::uint16_t> a, b;
  std::vector<float> c;

  block_operands(std::int64_t steps, dice& random, int least, int most)
    : a(static_cast<std::size_t>(steps * step_values)),
      b(a.size()),
      c(block_side * block_side) {
    const auto some = [&] { // exponents from `least` on
      return static_cast<std::uint16_t>((random.coin() ? 0x8000 : 0)
                                        | random.number(least, most) << 7
                                        | random.number(0, 127));
    };
    for (auto& x : a)
      x = some();
    for (auto& x : b)
      x = some();
    for (auto& x : c)
      x = fp32_of(some()) * static_cast<float>(random.number(1, 100)) / 64;
  }

  float left(std::int64_t step, int row, int place) const {
    return fp32_of(
      a[static_cast<std::size_t>(step * step_values + row * step_depth + place)]);
  }
  float right(std::int64_t step, int place, int column) const {
    return fp32_of(b[static_cast<std::size_t>(step * step_values + column / 16 * 512
                                              + place / 2 * step_depth + column % 16 * 2
                                              + place % 2)]);
  }
};

float normal(float x) {
  return std::fpclassify(x) == FP_SUBNORMAL ? std::copysign(0.0F, x) : x;
}

/// sum + a b: 0 if the result is tiny when rounded to 24 bits of any exponent.
float fused(float a, float b, float sum) {
  const auto exact = static_cast<long double>(a) * static_cast<long double>(b)
                     + static_cast<long double>(sum);
  int exponent = 0;
  const auto mantissa = std::frexp(exact, &exponent);
  const auto rounded =
    std::ldexp(std::nearbyint(std::ldexp(mantissa, 24)), exponent - 24);
  return std::fabs(rounded) < 0x1p-126L
           ? std::copysign(0.0F, static_cast<float>(mantissa))
           : std::fma(a, b, sum);
}

/// Intel's pseudocode of TDPBF16PS, step by step.
float by_tiles(const block_operands& of, std::int64_t steps, int row, int column,
               float sum) {
  for (std::int64_t s = 0; s < steps; ++s) {
    std::array<float, 2> chains{};
    for (int place = 0; place < step_depth; ++place) {
      auto& chain = chains[static_cast<std::size_t>(place % 2)];
      chain = fused(normal(of.left(s, row, place)), normal(of.right(s, place, column)),
                    chain);
    }
    sum = normal(normal(sum) + normal(chains[0] + chains[1]));
  }
  return sum;
}

/// And of VDPBF16PS.
float by_pairs(const block_operands& of, std::int64_t steps, int row, int column,
               float sum) {
  for (std::int64_t s = 0; s < steps; ++s)
    for (int pair = 0; pair < step_depth / 2; ++pair)
      for (const int place : {2 * pair + 1, 2 * pair})
        sum = fused(normal(of.left(s, row, place)), normal(of.right(s, place, column)),
                    normal(sum));
  return sum;
}

/// The paths whose products are made of blocks.
std::vector<bf16_path> paths_of_blocks() {
  auto result = bf16_paths();
  std::erase(result, bf16_path::widen);
  return result;
}

} // namespace

TEST_CASE("values are rounded to the nearest bf16, ties to even", "[bf16]") {
  dice random{1};
  for (int i = 0; i < 100'000; ++i) {
    auto x = any_float(random);
    if (i % 3 == 0) // halfway between two
      x =
        std::bit_cast<float>((std::bit_cast<std::uint32_t>(x) & 0xffff0000U) | 0x8000U);
    const float got = fp32_of(bf16_of(x));
    if (std::isnan(x)) {
      CHECK(std::isnan(got));
    } else if (std::isinf(x)) {
      CHECK(got == x);
    } else if (std::fpclassify(x) == FP_SUBNORMAL || x == 0) {
      CHECK((got == 0 && std::signbit(got) == std::signbit(x)));
    } else {
      const double expected = nearest(x);
      if (std::fabs(expected) > std::numeric_limits<float>::max())
        CHECK(std::isinf(got));
      else
        CHECK(static_cast<double>(got) == expected);
    }
  }
}

TEST_CASE("a block is summed in the order of its instructions", "[bf16]") {
  const auto path = GENERATE(from_range(paths_of_blocks()));
  const auto [least, most] = GENERATE(std::pair{120, 130}, std::pair{1, 140},
                                      std::pair{55, 75}, std::pair{0, 3});
  const std::int64_t steps = GENERATE(1, 3);
  const bool from_zero = GENERATE(false, true);
  INFO(to_text(path) << " of exponents " << least << " to " << most);
  dice random{static_cast<unsigned>(least + 1)};
  const block_operands of{steps, random, least, most};
  constexpr int stride = block_side + 3;
  std::vector<float> c(block_side * stride, 7);
  for (int r = 0; r < block_side; ++r)
    std::copy_n(of.c.begin() + r * block_side, block_side, c.begin() + r * stride);
  {
    const tile_state tiles{path};
    block_of(path)(steps, of.a.data(), of.b.data(), from_zero, c.data(), stride);
  }
  const auto definition = path == bf16_path::dot ? by_pairs : by_tiles;
  int wrong = 0;
  for (int r = 0; r < block_side; ++r) {
    for (int n = 0; n < block_side; ++n) {
      const auto at = static_cast<std::size_t>(r * block_side + n);
      const float expected = definition(of, steps, r, n, from_zero ? 0 : of.c[at]);
      const float got = c[static_cast<std::size_t>(r * stride + n)];
      wrong +=
        std::bit_cast<std::uint32_t>(got) != std::bit_cast<std::uint32_t>(expected)
        && !(std::isnan(got) && std::isnan(expected));
    }
    for (int n = block_side; n < stride; ++n)
      wrong += c[static_cast<std::size_t>(r * stride + n)] != 7;
  }
  CHECK(wrong == 0);
}

TEST_CASE("what is tiny before it is rounded is 0", "[bf16]") {
  const auto path = GENERATE(from_range(paths_of_blocks()));
  std::vector<std::uint16_t> a(step_values), b(step_values);
  // 2^-126 - 2^-150, from the first place down: std::fma makes 2^-126 of it.
  a[0] = b[0] = bf16_of(0x1p-63F);
  a[2] = bf16_of(0x1p-75F);
  b[step_depth] = bf16_of(-0x1p-75F); // places 2 and 3 of the columns
  std::vector<float> c(block_side * block_side, 7);
  const tile_state tiles{path};
  block_of(path)(1, a.data(), b.data(), true, c.data(), block_side);
  CHECK(c[0] == 0);
}

TEST_CASE("tiles are packed alike with instructions for it and without", "[bf16]") {
  dice random{9};
  std::vector<float> values(64 * 64);
  for (auto& x : values)
    x = any_float(random);
  for (int round = 0; round < 300; ++round) {
    const auto begin = random.number(0, 20), lines = random.number(0, 16),
               depth = random.number(1, 32);
    const bool by_depth = random.coin();
    std::vector<std::uint16_t> fast(tile_values, 1), plain(tile_values, 2);
    const auto check = [&](const auto& from) {
      using value = std::decay_t<decltype(from[0])>;
      const tile_source<value> s{from.data() + begin, 40, lines, depth, by_depth};
      pack_tile<true>(s, fast.data());
      pack_tile_plainly<true>(s, plain.data());
      REQUIRE((fast == plain));
      pack_tile<false>(s, fast.data());
      pack_tile_plainly<false>(s, plain.data());
      REQUIRE((fast == plain));
    };
    check(stored(values)); // before rounding, and then the same rounded
    const auto of_bf16 = fast;
    check(values);
    REQUIRE((fast == of_bf16));
  }
}

TEST_CASE("products of bf16 agree with the plain loops over rounded values", "[bf16]") {
  const bool ta = GENERATE(false, true), tb = GENERATE(false, true);
  const auto [alpha, beta] = GENERATE(std::pair{1.0F, 0.0F}, std::pair{1.0F, 1.0F},
                                      std::pair{1.0F, -0.5F}, std::pair{0.3F, 0.0F});
  for (const auto& [m, n, k] : sizes) {
    const auto a = random_values<float>(m * k, 1), b = random_values<float>(k * n, 2),
               before = random_values<float>(m * n, 3);
    const auto product = [&, m = m, n = n, k = k](const auto& x, const auto& y, auto c,
                                                  auto factor, auto keep) {
      using scalar = decltype(factor);
      const auto left = ta ? dense(x.data(), k, m).t() : dense(x.data(), m, k);
      const auto right = tb ? dense(y.data(), n, k).t() : dense(y.data(), k, n);
      multiply<scalar>(precision::bf16, left, right, factor, keep,
                       dense(c.data(), m, n));
      return c;
    };
    const auto wide = [](const std::vector<float>& x) {
      return std::vector<double>(x.begin(), x.end());
    };
    // Roundings of a sum of k random values, one after the other, come to 0.3 sqrt(k)
    // of one rounding. The number of values that the processor sums at once does not
    // matter.
    CHECK(relative_difference(product(a, b, before, alpha, beta),
                              product(wide(rounded(a)), wide(rounded(b)), wide(before),
                                      static_cast<double>(alpha),
                                      static_cast<double>(beta)))
          < (2 + std::sqrt(k)) * 0x1p-24);
  }
}

TEST_CASE("a product of bf16 has the same bits on any number of threads", "[bf16]") {
  const bool ta = GENERATE(false, true), tb = GENERATE(false, true);
  for (const auto& [m, n, k] :
       {std::tuple{256, 192, 128}, {101, 700, 600}, {700, 90, 513}}) {
    if (!tests::tries(
          5, {std::to_string(m), ta ? "transposed" : "", tb ? "transposed" : ""}))
      continue;
    const auto a = random_values<float>(m * k, 1), b = random_values<float>(k * n, 2);
    const auto left = ta ? dense(a.data(), k, m).t() : dense(a.data(), m, k);
    const auto right = tb ? dense(b.data(), n, k).t() : dense(b.data(), k, n);
    const auto made = [&, m = m, n = n](int threads) {
      auto c = random_values<float>(m * n, 3);
      stream on{threads, precision::bf16};
      matmul<float>(left, right, 1, dense(c.data(), m, n), on);
      return c;
    };
    const auto alone = made(1);
    for (const int threads : {2, 3})
      CHECK((made(threads) == alone));
    // A right side that is packed once has these bits too.
    auto c = random_values<float>(m * n, 3);
    std::vector<float> space(static_cast<std::size_t>(right_side<float>::values(k, n)));
    right_side<float>{precision::bf16, right, space.data()}.multiply(
      left, 1, 1, dense(c.data(), m, n));
    CHECK((c == alone));
  }
}

TEST_CASE("a packed right side serves products of its first rows and columns",
          "[bf16]") {
  const float factor = GENERATE(1.0F, 0.3F);
  for (const auto& [rows, columns, k, n] : {std::tuple{100, 90, 70, 40},
                                            {8, 32, 8, 32},
                                            {1100, 20, 1100, 20},
                                            {1100, 20, 600, 7}}) {
    const auto a = random_values<float>(20 * k, 1),
               b = random_values<float>(rows * columns, 2);
    std::vector<float> space(
      static_cast<std::size_t>(right_side<float>::values(rows, columns)));
    const right_side<float> packed{precision::bf16, dense(b.data(), rows, columns),
                                   space.data()};
    std::vector<float> c(static_cast<std::size_t>(20 * n), 9), whole(c.size());
    packed.multiply(dense(a.data(), 20, k), factor, 0, dense(c.data(), 20, n));
    multiply<float>(precision::bf16, dense(a.data(), 20, k),
                    matrix<const float>{b.data(), k, n, columns}, factor, 0,
                    dense(whole.data(), 20, n));
    CHECK((c == whole));
  }
}

TEST_CASE("what a product of bf16 must not read or write stays out of it", "[bf16]") {
  constexpr auto poison = std::numeric_limits<float>::quiet_NaN();
  const bool ta = GENERATE(false, true), tb = GENERATE(false, true);
  std::vector<float> a(70 * 70, poison), b(70 * 70, poison), c(40 * 60, 7);
  const auto filled = [](std::vector<float>& in, std::int64_t rows,
                         std::int64_t columns, float with) {
    const matrix<float> result{in.data(), rows, columns, 70};
    for (std::int64_t r = 0; r < rows; ++r)
      std::fill_n(result.row(r), columns, with);
    return result;
  };
  const matrix<const float> left = ta ? filled(a, 33, 35, 0.5F).t()
                                      : filled(a, 35, 33, 0.5F),
                            right =
                              tb ? filled(b, 37, 33, 2).t() : filled(b, 33, 37, 2);
  const matrix<float> part{c.data(), 35, 37, 60};
  multiply<float>(precision::bf16, left, right, 1, 0, part);
  for (std::int64_t r = 0; r < 40; ++r)
    for (std::int64_t i = 0; i < 60; ++i)
      REQUIRE(c[static_cast<std::size_t>(r * 60 + i)] == (r < 35 && i < 37 ? 33 : 7));
  CHECK_THROWS_AS(multiply<float>(precision::bf16, left, right, 2, 1, part),
                  std::logic_error);
}

TEST_CASE("an exact product is not rounded", "[bf16]") {
  const std::vector<float> a{1.0F + 1.0F / 1024}, b{1};
  std::vector<float> c(2);
  stream on{1, precision::bf16};
  exact_matmul<float>(dense(a.data(), 1, 1), dense(b.data(), 1, 1), 0,
                      dense(c.data(), 1, 1), on);
  matmul<float>(dense(a.data(), 1, 1), dense(b.data(), 1, 1), 0,
                dense(c.data() + 1, 1, 1), on);
  CHECK(c == std::vector<float>{1.0F + 1.0F / 1024, 1});
}

} // namespace troupe::bf16_test
