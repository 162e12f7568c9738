// SPDX-License-Identifier: BSD-3-Clause
// Products of bf16 by the fp32 kernel, bit by bit: compared with the plain loop of the
// sum that widened_gemm.hpp defines.

#include "kernels/widened_gemm.hpp"

#include "kernels/bf16_gemm.hpp"
#include "kernels/widened_attention.hpp"
#include "tests/kernels/bf16_values.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <stdexcept>

namespace troupe::widened_gemm_test {

namespace {

/// s + a b, as the processor computes the sum: rounded once, or twice.
float add_product(float a, float b, float s) {
#ifdef __FP_FAST_FMAF
  return std::fma(a, b, s);
#else
  const volatile float product = a * b;
  return s + product;
#endif
}

/// Values of bf16, by place (row, place) of a and (place, column) of b.
struct operands {
  std::vector<float> a, b;
  int m, n, k;

  float sum(int row, int column, float alpha, float beta, float before) const {
    const int blocks = (k + 511) / 512;
    volatile float total = beta == 0 ? 0.0F : beta * before;
    for (int block = 0; block < blocks; ++block) {
      float s = 0;
      for (int place = k * block / blocks; place < k * (block + 1) / blocks; ++place)
        s = add_product(a[static_cast<std::size_t>(row * k + place)],
                        b[static_cast<std::size_t>(place * n + column)], s);
      total = block == 0 && beta == 0 ? s : total + s;
    }
    return alpha * total;
  }
};

/// The same matrix (rows, columns), stored by columns.
template <class Value>
std::vector<Value> by_columns(const std::vector<Value>& values, int rows, int columns) {
  std::vector<Value> result(values.size());
  for (int r = 0; r < rows; ++r)
    for (int c = 0; c < columns; ++c)
      result[static_cast<std::size_t>(c * rows + r)] =
        values[static_cast<std::size_t>(r * columns + c)];
  return result;
}

/// A matrix as read, stored as fp32 or bf16, by rows or transposed.
class stored_values {
public:
  stored_values(std::vector<float> values, int rows, int columns, bool transposed,
                bool as_bf16)
    : rows_(rows), columns_(columns), transposed_(transposed), as_bf16_(as_bf16) {
    wide_ = transposed ? by_columns(values, rows, columns) : std::move(values);
    half_ = stored(wide_);
  }

  stored_matrix<const float> all() const {
    const auto place = [&](const auto& values) -> stored_matrix<const float> {
      return transposed_ ? dense(values.data(), columns_, rows_).t()
                         : dense(values.data(), rows_, columns_);
    };
    return as_bf16_ ? place(half_) : place(wide_);
  }

private:
  int rows_, columns_;
  bool transposed_, as_bf16_;
  std::vector<float> wide_;
  std::vector<bf16> half_;
};

int differing(const std::vector<float>& got, const std::vector<float>& expected) {
  int result = 0;
  for (std::size_t i = 0; i < expected.size(); ++i)
    result +=
      std::bit_cast<std::uint32_t>(got[i]) != std::bit_cast<std::uint32_t>(expected[i]);
  return result;
}

} // namespace

TEST_CASE("a widened product has the bits of the plain loop over its definition",
          "[bf16]") {
  const bool ta = GENERATE(false, true), tb = GENERATE(false, true);
  const bool halves = GENERATE(false, true);
  for (const auto& [m, n, k] : sizes) {
    const auto raw_a = random_values<float>(m * k, 1),
               raw_b = random_values<float>(k * n, 2),
               before = random_values<float>(m * n, 3);
    const operands of{rounded(raw_a), rounded(raw_b), m, n, k};
    const stored_values a{raw_a, m, k, ta, halves}, b{raw_b, k, n, tb, !halves};
    std::vector<float> room(static_cast<std::size_t>(bf16_packed_size(k, n)),
                            std::numeric_limits<float>::quiet_NaN());
    widened_pack_right(b.all(), 0, n, room.data());
    for (const auto& [alpha, beta] :
         {std::pair{1.0F, 0.0F}, {1.0F, 1.0F}, {1.0F, 0.3F}, {0.3F, 0.0F}}) {
      std::vector<float> expected;
      for (int row = 0; row < m; ++row)
        for (int column = 0; column < n; ++column)
          expected.push_back(of.sum(row, column, alpha, beta, before[expected.size()]));
      INFO(m << ' ' << n << ' ' << k << ", " << alpha << ' ' << beta);
      auto c = before;
      widened_gemm(a.all(), b.all(), alpha, beta, dense(c.data(), m, n), {});
      CHECK(differing(c, expected) == 0);
      c = before;
      widened_gemm_packed(a.all(), room.data(), k, 0, alpha, beta,
                          dense(c.data(), m, n), {});
      CHECK(differing(c, expected) == 0);
      if (beta != 0)
        continue;
      std::vector<bf16> half(c.size());
      widened_gemm(a.all(), b.all(), alpha, 0, dense(half.data(), m, n), {});
      CHECK((bits_of(half) == bits_of(stored(expected))));
      half.assign(c.size(), bf16{7});
      widened_gemm_packed(a.all(), room.data(), k, 0, alpha, 0,
                          dense(half.data(), m, n), {});
      CHECK((bits_of(half) == bits_of(stored(expected))));
    }
  }
}

TEST_CASE("operands are rounded as they are packed, whatever they are", "[bf16]") {
  dice random{5};
  for (const bool transposed : {false, true}) {
    std::vector<float> values(33 * 40);
    for (auto& x : values)
      x = any_float(random);
    std::vector<float> one(33 * 33);
    for (std::size_t i = 0; i < 33; ++i)
      one[i * 34] = 1;
    // Times 1 and from 0, a value is unchanged. But a zero loses the sign, and a NaN or
    // an infinity times 0 is a NaN.
    for (auto& x : values)
      if (!std::isfinite(fp32_of(bf16_of(x))))
        x = 3;
    const auto expected = rounded(values);
    const stored_values unit{one, 33, 33, false, false},
      other{values, 33, 40, transposed, false};
    std::vector<float> c(values.size(), 7);
    widened_gemm(unit.all(), other.all(), 1, 0, dense(c.data(), 33, 40), {});
    CHECK((c == expected));
    const stored_values left{by_columns(values, 33, 40), 40, 33, transposed, false};
    widened_gemm(left.all(), unit.all(), 1, 0, dense(c.data(), 40, 33), {});
    CHECK((by_columns(c, 40, 33) == expected));
  }
}

namespace {

/// One head of widened attention, forward and backward, with results in fp32.
struct attended_head {
  std::int64_t length, size;
  std::vector<float> q, k, v, dy, y{}, log_sum{}, dq{}, dk{}, dv{};

  template <class Values>
  auto at(Values& of) const {
    return dense(of.data(), length, size);
  }

  /// \param halves operands are stored as bf16, and so is y between the passes
  attended_head& run(bool halves = false) {
    const auto hq = stored(q), hk = stored(k), hv = stored(v), hdy = stored(dy);
    using head = widened_attention::head<const float>;
    const head in = halves ? head{at(hq), at(hk), at(hv)} : head{at(q), at(k), at(v)};
    const stored_matrix<const float> upper =
      halves ? stored_matrix<const float>{at(hdy)} : stored_matrix<const float>{at(dy)};
    for (auto* const one : {&y, &dq, &dk, &dv})
      one->assign(q.size(), 9);
    log_sum.assign(static_cast<std::size_t>(length), 9);
    std::vector<float> space(
      static_cast<std::size_t>(widened_attention::scratch(length, size)),
      std::numeric_limits<float>::quiet_NaN());
    widened_attention::forward(in, at(y), log_sum.data(), space.data());
    widened_attention::backward(in, at(y), log_sum.data(), upper,
                                {at(dq), at(dk), at(dv)}, space.data());
    return *this;
  }
};

/// Row t has `value` at place t.
std::vector<float> diagonal(std::int64_t length, std::int64_t size, float value) {
  std::vector<float> result(static_cast<std::size_t>(length * size));
  for (std::int64_t t = 0; t < length; ++t)
    result[static_cast<std::size_t>(t * size + t)] = value;
  return result;
}

} // namespace

TEST_CASE("widened attention reads the same operands as fp32 and as bf16",
          "[bf16][attention]") {
  const auto [length, size] =
    GENERATE(std::pair{1, 4}, std::pair{33, 20}, std::pair{130, 64});
  const auto values = [count = length * size](unsigned seed) {
    return random_values<float>(count, seed);
  };
  attended_head wide{length, size, values(1), values(2), values(3), values(4)};
  auto half = wide;
  wide.run();
  half.run(true);
  CHECK(differing(wide.y, half.y) == 0);
  CHECK(differing(wide.log_sum, half.log_sum) == 0);
  CHECK(differing(wide.dq, half.dq) == 0);
  CHECK(differing(wide.dk, half.dk) == 0);
  CHECK(differing(wide.dv, half.dv) == 0);
}

TEST_CASE(
  "weights and gradients of scores are rounded to bf16 where products read them",
  "[bf16][attention]") {
  constexpr std::int64_t length = 16, size = 32; // keys that are read at once
  const auto values = [](unsigned seed) {
    return random_values<float>(length * size, seed);
  };
  // Products with rows of the unit matrix show the values that are read. A forward
  // reads the weights, times the same factor in a row; a backward reads the weights,
  // and gradients of scores.
  const auto weights = attended_head{length,
                                     size,
                                     values(1),
                                     values(2),
                                     diagonal(length, size, 1),
                                     diagonal(length, size, 1)}
                         .run();
  for (std::int64_t query = 0; query < length; ++query) {
    const auto* const row = weights.y.data() + query * size;
    const float whole = *std::max_element(row, row + size); // a weight of 1
    for (std::int64_t key = 0; key <= query; ++key) {
      const float weight = row[key] / whole;
      CHECK(std::fabs(weight - fp32_of(bf16_of(weight))) <= 0x1p-21F * weight);
    }
  }
  CHECK(differing(weights.dv, rounded(weights.dv)) == 0);
  const auto gradients =
    attended_head{
      length,    size,     diagonal(length, size, 2), diagonal(length, size, 1),
      values(3), values(4)}
      .run();
  CHECK(differing(gradients.dq, rounded(gradients.dq)) == 0);
  CHECK(differing(gradients.dk, rounded(gradients.dk)) == 0);
  CHECK(gradients.dq[size] != 0);
}

} // namespace troupe::widened_gemm_test
