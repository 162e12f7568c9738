// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/matmul.hpp"

#include "tests/kernels/numbers.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include <stdexcept>

namespace troupe::matmul_test {

namespace {

/// a (M, K) times b (K, N) plus beta c, with or without stored transposition.
template <class Scalar>
std::vector<Scalar> product(std::int64_t m, std::int64_t n, std::int64_t k, bool ta,
                            bool tb, Scalar beta, int threads) {
  const auto a = random_values<Scalar>(m * k, 1), b = random_values<Scalar>(k * n, 2);
  auto c = random_values<Scalar>(m * n, 3);
  const auto left = ta ? dense(a.data(), k, m).t() : dense(a.data(), m, k);
  const auto right = tb ? dense(b.data(), n, k).t() : dense(b.data(), k, n);
  stream on{threads};
  matmul<Scalar>(left, right, beta, dense(c.data(), m, n), on);
  return c;
}

} // namespace

TEST_CASE("products agree with the plain loops, transposed or not", "[matmul]") {
  const bool ta = GENERATE(false, true), tb = GENERATE(false, true);
  const float beta = GENERATE(0.0F, 1.0F);
  for (const auto& [m, n, k] : {std::tuple{1, 1, 1},
                                {3, 5, 7},
                                {64, 17, 33},
                                {130, 96, 64},
                                {40, 200, 128},
                                {31, 300, 1100}})
    CHECK(relative_difference(product<float>(m, n, k, ta, tb, beta, 1),
                              product<double>(m, n, k, ta, tb, beta, 1))
          < 1e-6);
}

TEST_CASE("a product has the same bits on any number of threads", "[matmul]") {
  const bool ta = GENERATE(false, true), tb = GENERATE(false, true);
  for (const auto& [m, n, k] :
       {std::tuple{256, 192, 128}, {101, 700, 600}, {700, 90, 513}})
    for (const int threads : {2, 3})
      CHECK((product<float>(m, n, k, ta, tb, 1, threads)
             == product<float>(m, n, k, ta, tb, 1, 1)));
}

TEST_CASE("a product of a part of a matrix leaves the rest alone", "[matmul]") {
  const auto a = random_values<float>(4 * 3, 1), b = random_values<float>(3 * 2, 2);
  std::vector<float> c(4 * 5, 7);
  const matrix<float> whole{c.data(), 4, 5, 5};
  multiply<float>(precision::fp32, dense(a.data(), 4, 3), dense(b.data(), 3, 2), 1, 0,
                  whole.column_range(1, 2));
  for (std::int64_t r = 0; r < 4; ++r)
    for (const std::int64_t untouched : {0, 3, 4})
      CHECK(whole.row(r)[untouched] == 7);
  CHECK(whole.row(1)[1] != 7);
}

TEST_CASE("sizes that do not fit are a broken invariant", "[matmul]") {
  std::vector<float> values(16);
  CHECK_THROWS_AS(multiply<float>(precision::fp32,
                                  dense<const float>(values.data(), 2, 3),
                                  dense<const float>(values.data(), 2, 3), 1, 0,
                                  dense(values.data(), 2, 3)),
                  std::logic_error);
}

} // namespace troupe::matmul_test
