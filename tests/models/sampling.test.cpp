// SPDX-License-Identifier: BSD-3-Clause
#include "models/sampling.hpp"

#include "models/random.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers.hpp>

#include <cmath>
#include <limits>
#include <vector>

namespace troupe::sampling_test {

namespace {

/// The frequency of each token in a number of draws.
std::vector<double> frequencies(const std::vector<float>& logits,
                                const sampling_options& how) {
  constexpr int draws = 40'000;
  const random_stream random{5, "draws"};
  std::vector<double> result(logits.size());
  for (int i = 0; i < draws; ++i)
    result[static_cast<std::size_t>(
      sample(logits, how, random.uniform(static_cast<std::uint64_t>(i))))] += 1;
  for (auto& count : result)
    count /= draws;
  return result;
}

} // namespace

TEST_CASE("at temperature 0 the largest logit is chosen, of equal ones the first",
          "[sampling]") {
  const std::vector<float> logits{-1, 3, 2, 3, -7};
  for (const double random : {0.0, 0.5, 0.999})
    CHECK(sample(logits, {.temperature = 0}, random) == 1);
}

TEST_CASE("tokens come as often as the softmax of their logits says", "[sampling]") {
  const std::vector<float> logits{0.5F, -2, 1.5F, 0, 1};
  const auto temperature = GENERATE(0.5, 1.0, 3.0);
  const auto got = frequencies(logits, {temperature, 0});
  double sum = 0;
  for (const float logit : logits)
    sum += std::exp(logit / temperature);
  for (std::size_t i = 0; i < logits.size(); ++i)
    CHECK(std::abs(got[i] - std::exp(logits[i] / temperature) / sum) < 0.01);
}

TEST_CASE("top-k draws from as many of the largest logits", "[sampling]") {
  const std::vector<float> logits{0.5F, -2, 1.5F, 0.5F, 1};
  const auto got = frequencies(logits, {1, 3});
  const double sum = std::exp(0.5) + std::exp(1.5) + std::exp(1.0);
  CHECK(std::abs(got[0] - std::exp(0.5) / sum) < 0.01); // the first of two equal tokens
  CHECK(got[1] == 0);
  CHECK(std::abs(got[2] - std::exp(1.5) / sum) < 0.01);
  CHECK(got[3] == 0);
  CHECK(std::abs(got[4] - std::exp(1.0) / sum) < 0.01);
  CHECK(frequencies(logits, {1, 1})[2] == 1);
  CHECK(frequencies(logits, {1, 5}) == frequencies(logits, {1, 0}));
  CHECK(frequencies(logits, {1, 500}) == frequencies(logits, {1, 0}));
}

TEST_CASE("a tiny temperature draws the largest logit, without overflow",
          "[sampling]") {
  CHECK(sample(std::vector<float>{-3e38F, 3e38F}, {1e-30, 0}, 0.999) == 1);
}

TEST_CASE("a logit that is not finite is told", "[sampling]") {
  const auto nan = std::numeric_limits<float>::quiet_NaN();
  const auto infinite = std::numeric_limits<float>::infinity();
  for (const double temperature : {0.0, 1.0}) {
    CHECK_THROWS_WITH(sample(std::vector<float>{0, -nan}, {temperature, 0}, 0.5),
                      "the logit of token 1 is not a number: the weights are unusable");
    CHECK_THROWS_WITH(sample(std::vector<float>{-infinite, 0}, {temperature, 0}, 0.5),
                      "the logit of token 0 is infinite: the weights are unusable");
  }
}

} // namespace troupe::sampling_test
