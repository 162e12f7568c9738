// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/attention.hpp"

#include "tests/kernels/numbers.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include <algorithm>
#include <limits>

namespace troupe::attention_test {

namespace {

/// One attention over random inputs, forward and backward.
template <class Scalar>
struct attended {
  explicit attended(attention_shape d, int threads = 1,
                    precision products = precision::fp32)
    : dims(d),
      on(threads, products),
      qkv(random_values<Scalar>(values() * 3, 1)),
      dy(random_values<Scalar>(values(), 2)),
      y(dy.size()),
      log_sum(static_cast<std::size_t>(d.sequences * d.heads * d.length)),
      dqkv(qkv.size(), 99),
      space(
        static_cast<std::size_t>(attention<Scalar>::scratch(d, threads, products))) {
    // nop
  }

  std::int64_t values() const { return dims.sequences * dims.length * dims.width; }

  double forward() {
    attention<Scalar>::forward(dims, wide(qkv), narrow(y), log_sum.data(), space.data(),
                               on);
    return dot(y, dy);
  }

  void backward() {
    attention<Scalar>::backward(dims, wide(qkv), narrow(y), log_sum.data(), narrow(dy),
                                wide(dqkv), space.data(), on);
  }

  matrix<Scalar> narrow(std::vector<Scalar>& of) const {
    return dense(of.data(), dims.sequences * dims.length, dims.width);
  }

  matrix<Scalar> wide(std::vector<Scalar>& of) const {
    return dense(of.data(), dims.sequences * dims.length, 3 * dims.width);
  }

  attention_shape dims;
  stream on;
  std::vector<Scalar> qkv, dy, y, log_sum, dqkv, space;
};

/// Attention as the paper writes it, one query at a time.
std::vector<double> by_definition(const attended<double>& in) {
  const auto [B, T, H, C, by_position] = in.dims;
  const auto row_of = [B = B, T = T, by_position = by_position](auto b, auto t) {
    return by_position ? t * B + b : b * T + t;
  };
  const auto size = C / H;
  std::vector<double> y(in.y.size());
  for (std::int64_t b = 0; b < B; ++b)
    for (std::int64_t h = 0; h < H; ++h)
      for (std::int64_t t = 0; t < T; ++t) {
        const auto at = [&, b = b, h = h, C = C](std::int64_t token, int which) {
          return in.qkv.data() + row_of(b, token) * 3 * C + which * C + h * size;
        };
        std::vector<double> weights;
        double sum = 0;
        for (std::int64_t s = 0; s <= t; ++s) {
          double score = 0;
          for (std::int64_t c = 0; c < size; ++c)
            score += at(t, 0)[c] * at(s, 1)[c];
          weights.push_back(std::exp(score / std::sqrt(static_cast<double>(size))));
          sum += weights.back();
        }
        for (std::int64_t s = 0; s <= t; ++s)
          for (std::int64_t c = 0; c < size; ++c)
            y[static_cast<std::size_t>(row_of(b, t) * C + h * size + c)] +=
              weights[static_cast<std::size_t>(s)] / sum * at(s, 2)[c];
      }
  return y;
}

} // namespace

TEST_CASE("attention in blocks is attention by its definition", "[attention]") {
  const auto length = GENERATE(1, 5, 64, 65, 150);
  attended<double> blocks{{2, length, 2, 8, GENERATE(false, true)}};
  blocks.forward();
  CHECK(relative_difference(blocks.y, by_definition(blocks)) < 1e-13);
}

TEST_CASE("attention's gradient is that of finite differences", "[attention]") {
  const auto length = GENERATE(3, 70);
  attended<double> exact{{length > 10 ? 1 : 2, length, 2, 4, GENERATE(false, true)}};
  exact.forward();
  exact.backward();
  const auto loss = [&](const std::vector<double>& qkv) {
    auto& other = exact;
    other.qkv = qkv;
    return other.forward();
  };
  const auto gradient = exact.dqkv;
  CHECK(relative_difference(gradient, finite_differences(loss, exact.qkv)) < 1e-7);
}

TEST_CASE("attention in float agrees with double, but for what is rounded",
          "[attention][bf16]") {
  struct bounds {
    precision products;
    double forward, backward;
  };
  const auto one =
    GENERATE(bounds{precision::fp32, 1e-6, 2e-6}, bounds{precision::bf16, 6e-3, 1e-2});
  const auto length = GENERATE(7, 64, 130, 600);
  attended<float> fast{{2, length, 4, 64}, 1, one.products};
  attended<double> exact{{2, length, 4, 64}};
  fast.forward();
  fast.backward();
  exact.forward();
  exact.backward();
  CHECK(relative_difference(fast.y, exact.y) < one.forward);
  CHECK(relative_difference(fast.dqkv, exact.dqkv) < one.backward);
}

TEST_CASE("attention in float agrees with double at any size of a head, whatever its "
          "space held",
          "[attention]") {
  const auto size = GENERATE(1, 4, 20, 32, 40, 96), length = GENERATE(1, 33, 71, 129);
  const bool by_position = GENERATE(false, true);
  attended<float> fast{{2, length, 2, 2 * size, by_position}};
  attended<double> exact{{2, length, 2, 2 * size, by_position}};
  std::fill(fast.space.begin(), fast.space.end(),
            std::numeric_limits<float>::quiet_NaN());
  fast.forward();
  fast.backward();
  exact.forward();
  exact.backward();
  CHECK(relative_difference(fast.y, exact.y) < 1e-6);
  CHECK(relative_difference(fast.dqkv, exact.dqkv) < 2e-6);
}

TEST_CASE("attention in float bears scores that are far apart", "[attention]") {
  attended<float> fast{{1, 100, 2, 128}};
  attended<double> exact{{1, 100, 2, 128}};
  for (std::size_t i = 0; i < fast.qkv.size(); ++i)
    exact.qkv[i] = fast.qkv[i] *= i % 384 < 128 ? 64.0F : 1.0F; // the queries
  fast.forward();
  exact.forward();
  CHECK(relative_difference(fast.y, exact.y) < 1e-4);
}

TEST_CASE("attention has the same bits on any number of threads", "[attention]") {
  attended<float> alone{{2, 100, 4, 32}}, together{{2, 100, 4, 32}, 3};
  alone.forward();
  alone.backward();
  together.forward();
  together.backward();
  CHECK(alone.y == together.y);
  CHECK(alone.dqkv == together.dqkv);
}

TEST_CASE("a token does not see later ones", "[attention]") {
  attended<float> before{{1, 80, 2, 8}}, after{{1, 80, 2, 8}};
  for (std::size_t i = 70 * 24; i < after.qkv.size(); ++i)
    after.qkv[i] += 1;
  before.forward();
  after.forward();
  for (std::size_t i = 0; i < 70 * 8; ++i)
    REQUIRE(before.y[i] == after.y[i]);
  CHECK(before.y[70 * 8] != after.y[70 * 8]);
}

} // namespace troupe::attention_test
