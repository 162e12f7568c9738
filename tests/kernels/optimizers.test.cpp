// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/optimizers.hpp"

#include "tests/kernels/numbers.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

namespace troupe::optimizers_test {

namespace {

stream on;

bool close(const std::vector<float>& a, const std::vector<double>& b) {
  return relative_difference(a, b) < 1e-6;
}

} // namespace

// Expected values: the algorithms as PyTorch documents torch.optim.AdamW and SGD, in
// double.
TEST_CASE("AdamW is PyTorch's", "[optimizers]") {
  std::vector<float> p{1, -2, 3}, m(3), v(3);
  const std::vector<float> g{0.5F, -1, 2};
  std::vector<double> exact{1, -2, 3}, em(3), ev(3);
  for (int t = 1; t <= 3; ++t) {
    update_values(adamw_update::of(0.1, 0.9, 0.999, 1e-8, 0.01, t), 0.5F,
                  {g.data(), p.data(), p.data(), {m.data(), v.data()}}, 3, on);
    for (std::size_t i = 0; i < 3; ++i) {
      const double gradient = 0.5 * static_cast<double>(g[i]);
      exact[i] -= 0.1 * 0.01 * exact[i];
      em[i] = 0.9 * em[i] + 0.1 * gradient;
      ev[i] = 0.999 * ev[i] + 0.001 * gradient * gradient;
      const double mean = em[i] / (1 - std::pow(0.9, t));
      const double square = ev[i] / (1 - std::pow(0.999, t));
      exact[i] -= 0.1 * mean / (std::sqrt(square) + 1e-8);
    }
    CHECK(close(p, exact));
  }
}

TEST_CASE("SGD is PyTorch's, with and without momentum", "[optimizers]") {
  for (const double momentum : {0.0, 0.9}) {
    std::vector<float> p{1, -2, 3}, velocity(3);
    const std::vector<float> g{0.5F, -1, 2};
    std::vector<double> exact{1, -2, 3}, buffer(3);
    const auto update = momentum > 0 ? value_update{momentum_update{0.1F, 0.01F, 0.9F}}
                                     : value_update{sgd_update{0.1F, 0.01F}};
    for (int t = 0; t < 3; ++t) {
      update_values(
        update, 0.25F,
        {g.data(), p.data(), p.data(), {momentum > 0 ? velocity.data() : nullptr}}, 3,
        on);
      for (std::size_t i = 0; i < 3; ++i) {
        buffer[i] =
          momentum * buffer[i] + 0.25 * static_cast<double>(g[i]) + 0.01 * exact[i];
        exact[i] -= 0.1 * buffer[i];
      }
    }
    CHECK(close(p, exact));
  }
}

// 200,000 updates take the product of momenta far below the smallest double.
TEST_CASE("the coefficients of NAdam are those of the product of all momenta",
          "[optimizers]") {
  const double beta1 = GENERATE(0.0, 0.9, 0.9999), psi = GENERATE(0.0, 0.004, 1.0);
  CAPTURE(beta1, psi);
  const auto mu = [&](std::int64_t t) {
    return beta1 * (1 - std::pow(0.96, static_cast<double>(t) * psi) / 2);
  };
  double product = 1;
  for (std::int64_t t = 1; t <= 200'000; ++t) {
    product *= mu(t);
    if (t > 20 && t % 49'999 != 0)
      continue;
    CAPTURE(t);
    const auto u = nadam_update::of(0.1, beta1, 0.99, 1e-8, 0.5, psi, t);
    const auto is = [](float step, double expected) {
      return std::abs(static_cast<double>(step) - expected) <= 1e-6 * expected;
    };
    CHECK(is(u.gradient_step, 0.1 * (1 - mu(t)) / (1 - product)));
    CHECK(is(u.mean_step, 0.1 * mu(t + 1) / (1 - product * mu(t + 1))));
    CHECK(u.decay == static_cast<float>(1 - 0.1 * 0.5));
  }
}

namespace {

/// An update of each kind.
const std::vector<value_update> all_updates{
  sgd_update{0.1F, 0.01F}, momentum_update{0.1F, 0.01F, 0.9F},
  adamw_update::of(0.1, 0.9, 0.999, 1e-8, 0.01, 7),
  nadam_update::of(0.1, 0.9, 0.999, 1e-8, 0.01, 0.004, 7)};

} // namespace

TEST_CASE("an update elsewhere leaves its source alone, and has the same bits",
          "[optimizers]") {
  REQUIRE(all_updates.size() == std::variant_size_v<value_update>);
  for (const auto& update : all_updates) {
    const auto g = random_values<float>(100, 1), from = random_values<float>(100, 2);
    auto in_place = from, elsewhere = std::vector<float>(100);
    std::vector<float> m1(100), v1(100, 1), m2(100), v2(100, 1);
    update_values(update, 1,
                  {g.data(), in_place.data(), in_place.data(), {m1.data(), v1.data()}},
                  100, on);
    update_values(update, 1,
                  {g.data(), from.data(), elsewhere.data(), {m2.data(), v2.data()}},
                  100, on);
    CHECK(in_place == elsewhere);
    CHECK(m1 == m2);
    CHECK(v1 == v2);
    CHECK(from == random_values<float>(100, 2));
  }
}

TEST_CASE("an update has the same bits on any number of threads", "[optimizers]") {
  constexpr std::int64_t n = 1'000'003;
  const auto count = static_cast<std::size_t>(n);
  const auto g = random_values<float>(count, 1), from = random_values<float>(count, 2),
             before = random_values<float>(count, 3);
  stream three{3};
  const auto updated = [&](stream& by, const value_update& update) {
    auto to = from, mean = before, square = std::vector<float>(count, 0.5F);
    update_values(update, 0.5F,
                  {g.data(), from.data(), to.data(), {mean.data(), square.data()}}, n,
                  by);
    for (const auto& state : {mean, square})
      to.insert(to.end(), state.begin(), state.end());
    return to;
  };
  for (const auto& update : all_updates)
    CHECK((updated(on, update) == updated(three, update)));
}

TEST_CASE("squares are summed in double", "[optimizers]") {
  const std::vector<float> x(1'000'000, 0.1F), y{3, -4};
  const auto sums = sums_of_squares({x, y, {}}, on);
  REQUIRE(sums.size() == 3);
  CHECK(std::abs(sums[0] - 1e6 * 0.1F * 0.1F) < 1e-3);
  CHECK(sums[1] == 25);
  CHECK(sums[2] == 0);
}

} // namespace troupe::optimizers_test
