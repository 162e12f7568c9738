// SPDX-License-Identifier: BSD-3-Clause
// Right sides that stay packed from product to product. Tested: the version that a
// product reads, and equality with the bits of a product that packs for itself.

#include "kernels/matmul.hpp"
#include "tests/kernels/numbers.hpp"
#include "tests/tries.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include <limits>
#include <string>
#include <tuple>
#include <vector>

namespace troupe::kept_right_side_test {

namespace {

constexpr float poison = std::numeric_limits<float>::quiet_NaN();

/// A (k, n) right side, as read, with memory to stay packed.
struct kept {
  kept(std::int64_t rows, std::int64_t columns, bool as_transposed)
    : k(rows),
      n(columns),
      transposed(as_transposed),
      values(random_values<float>(k * n, 2)),
      room(static_cast<std::size_t>(kept_size(k, n)), poison) {}

  matrix<const float> plain() const {
    return transposed ? dense<const float>(values.data(), n, k).t()
                      : dense<const float>(values.data(), k, n);
  }

  kept_right_side<float> of(int version) {
    return {plain(), version, room.data(), &holds};
  }

  std::int64_t k, n;
  bool transposed;
  std::vector<float> values, room;
  int holds = -1;
};

} // namespace

TEST_CASE("a right side that stays packed makes the same bits", "[bf16]") {
  const bool transposed = GENERATE(false, true);
  const auto what =
    GENERATE(epilogue_kind::none, epilogue_kind::bias, epilogue_kind::bias_gelu);
  for (const auto& [m, n, k] : {std::tuple{100, 256, 96},
                                {33, 700, 600},
                                {700, 90, 513},
                                {5, 1100, 33},
                                {300, 3, 40}}) {
    if (!tests::tries(7, {std::to_string(n), std::to_string(static_cast<int>(what)),
                          transposed ? "transposed" : ""}))
      continue;
    kept b{k, n, transposed};
    const auto a = random_values<float>(m * k, 1), bias = random_values<float>(n, 5);
    const auto made = [&, m = m, n = n, k = k](int threads, bool packed,
                                               bool stored_as_bf16) {
      stream on{threads, precision::bf16};
      std::vector<float> c(static_cast<std::size_t>(m * n), poison), y = c;
      stored_matrix<float> to = dense(c.data(), m, n);
      to.is_bf16 = stored_as_bf16;
      const epilogue<float> end{
        .kind = what, .bias = bias.data(), .y = dense(y.data(), m, n)};
      const auto left = dense<const float>(a.data(), m, k);
      if (packed)
        matmul<float>(left, b.of(4), 0, to, on, end);
      else
        matmul<float>(left, b.plain(), 0, to, on, end);
      if (what == epilogue_kind::bias_gelu)
        c.insert(c.end(), y.begin(), y.end());
      return std::string(reinterpret_cast<const char*>(c.data()),
                         c.size() * sizeof(float));
    };
    for (const bool stored : {false, true})
      for (const int threads : {1, 2, 3}) {
        INFO(m << ' ' << n << ' ' << k << ' ' << threads);
        b.holds = -1; // so that this many threads pack
        CHECK((made(threads, true, stored) == made(1, false, stored)));
        CHECK(b.holds == 4);
      }
  }
}

TEST_CASE("a right side is packed once a version", "[bf16]") {
  kept b{64, 96, GENERATE(false, true)};
  const auto a = random_values<float>(40 * 64, 1);
  stream on{2, precision::bf16};
  const auto product = [&](int version) {
    std::vector<float> c(40 * 96, poison);
    matmul<float>(dense<const float>(a.data(), 40, 64), b.of(version), 0,
                  dense(c.data(), 40, 96), on);
    return c;
  };
  const auto first = product(7);
  b.values =
    random_values<float>(64 * 96, 3); // values that no product of version 7 reads again
  CHECK((product(7) == first));
  const auto second = product(8);
  CHECK((second != first));
  CHECK((product(8) == second));
  b.values = random_values<float>(64 * 96, 2);
  CHECK((product(7) == first)); // an older version is packed anew
}

TEST_CASE("products that pack for themselves read no room", "[bf16]") {
  const auto by = GENERATE(precision::fp32, precision::bf16);
  const auto a = random_values<float>(8 * 16, 1), b = random_values<float>(16 * 24, 2);
  stream on{1, by};
  std::vector<float> c(8 * 24, poison), plain = c;
  const matrix<const float> left = dense(a.data(), 8, 16),
                            right = dense(b.data(), 16, 24);
  matmul<float>(left, kept_right_side<float>{right}, 0, dense(c.data(), 8, 24), on);
  matmul<float>(left, right, 0, dense(plain.data(), 8, 24), on);
  CHECK((c == plain));
}

} // namespace troupe::kept_right_side_test
