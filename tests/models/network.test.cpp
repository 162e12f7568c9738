// SPDX-License-Identifier: BSD-3-Clause
#include "models/network.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <algorithm>
#include <map>

namespace troupe::network_test {

using Catch::Matchers::ContainsSubstring;

namespace {

std::int64_t values_of(const network<float>& whole) {
  std::int64_t sum = 0;
  for (const auto* p : whole.parameters())
    sum += p->values();
  return sum;
}

std::string refusal_of(const model_options& options) {
  const auto made = make_network<float>(options);
  return made ? "" : made.error();
}

} // namespace

TEST_CASE("networks have the parameters of their papers", "[network]") {
  // GPT-2 small has 124,439,808 values, and the untied head 50257 * 768 more.
  CHECK(values_of(*make_network<float>({"gpt", 12, 768, 12, 1024, 50257}))
        == 124'439'808 + 50257 * 768);
  CHECK(make_network<float>({"gpt", 12, 768, 12, 1024, 50257, {}, true})->values()
        == 124'439'808);
  CHECK(values_of(*make_network<float>({"lenet"})) == 44'426);
  CHECK(values_of(*make_network<float>({"lenet5"})) == 61'706);
  CHECK(values_of(*make_network<float>({"mlp", 2, 100})) == 785 * 100 + 101 * 10);
}

TEST_CASE("models and sizes that are not are refused", "[network]") {
  CHECK_THAT(refusal_of({"resnet"}),
             ContainsSubstring("no model 'resnet'")
               && ContainsSubstring("gpt, lenet, lenet5, mlp, moe"));
  CHECK_THAT(refusal_of({"gpt", 2, 10, 3}),
             ContainsSubstring("that divides --d-model"));
  CHECK_THAT(refusal_of({"gpt", 0}), ContainsSubstring("1 to 10,000 layers"));
  CHECK_THAT(refusal_of({"mlp", 10'001}), ContainsSubstring("1 to 10,000 layers"));
  CHECK_THAT(refusal_of({"gpt", 2, 8, 2, -1}), ContainsSubstring("from 1 to"));
  for (const char* model : {"lenet", "lenet5", "mlp"})
    CHECK_THAT(refusal_of({.model = model, .tied = true}),
               ContainsSubstring("--tied applies only to gpt and moe"));
}

TEST_CASE("the embedding stays with the first block, the head with the last",
          "[network]") {
  const auto whole = *make_network<float>({"gpt", 6, 8, 2, 4, 5});
  CHECK(whole.units() == 6);
  CHECK(*cut(whole, 4, {2, 2, 1, 1}) == std::vector{0, 5, 9, 11, 14});
  CHECK(*cut(whole, 1, {}) == std::vector{0, 14});
}

TEST_CASE("a split by costs goes by them, and not by operations", "[network]") {
  const auto whole = *make_network<float>({"gpt", 4, 8, 2, 4, 5});
  CHECK(*cut(whole, 2, {}, {1, 1, 1, 1}) == *cut(whole, 2, {2, 2}));
  CHECK(*cut(whole, 2, {}, {3, 1, 1, 1}) == *cut(whole, 2, {1, 3}));
  CHECK(*cut(whole, 2, {}, {0.1, 0.1, 0.1, 9}) == *cut(whole, 2, {3, 1}));
  CHECK(*cut(whole, 3, {}, {1, 5, 1, 1}) == *cut(whole, 3, {1, 1, 2}));
  CHECK_THAT(cut(whole, 2, {}, {1, 1, 1}).error(),
             ContainsSubstring("one cost for each of the model's 4"));
}

TEST_CASE("the largest stage costs as little as in any other split", "[network]") {
  const auto whole = *make_network<float>(GENERATE(
    model_options{"lenet"}, model_options{"lenet5"},
    model_options{"gpt", 7, 8, 2, 4, 300}, model_options{"moe", 8, 8, 2, 4, 5}));
  const int units = whole.units();
  const auto largest = [&](const std::vector<int>& at) {
    double most = 0;
    for (std::size_t s = 0; s + 1 < at.size(); ++s) {
      double cost = 0;
      for (int l = at[s]; l < at[s + 1]; ++l)
        cost += whole.layers[static_cast<std::size_t>(l)]->operations();
      most = std::max(most, cost);
    }
    return most;
  };
  std::map<std::size_t, double> least;                        // by number of stages
  for (unsigned ends = 0; ends < 1U << (units - 1); ++ends) { // units that end a stage
    std::vector<int> sizes(1, 1);
    for (int unit = 1; unit < units; ++unit)
      if ((ends >> (unit - 1) & 1U) != 0)
        sizes.push_back(1);
      else
        ++sizes.back();
    const auto cost = largest(*cut(whole, static_cast<int>(sizes.size()), sizes));
    const auto [known, first] = least.emplace(sizes.size(), cost);
    known->second = std::min(known->second, cost);
  }
  for (int stages = 1; stages <= units; ++stages)
    CHECK(largest(*cut(whole, stages, {})) == least[static_cast<std::size_t>(stages)]);
}

TEST_CASE("splits that do not fit are refused with what does", "[network]") {
  const auto whole = *make_network<float>({"gpt", 4, 8, 2, 4, 5});
  CHECK_THAT(cut(whole, 5, {}).error(), ContainsSubstring("at most 4 stages"));
  for (const std::vector<int>& bad :
       {std::vector{2, 2, 1}, {4}, {4, 0}, {5, -1}, {1, 1, 1, 1}})
    CHECK_THAT(
      cut(whole, 2, bad).error(),
      ContainsSubstring("a number of at least 1 for each of 2 stages, and a sum of 4"));
}

TEST_CASE("first values depend on seed, name and shape alone", "[parameter]") {
  const auto values = [](const parameter& p, std::uint64_t seed) {
    std::vector<float> result(static_cast<std::size_t>(p.values()));
    initialise(p, seed, result.data());
    return result;
  };
  parameter p{"fc1.weight", {20, 30}, beginning::normal, 0.5};
  const auto first = values(p, 1);
  p.offset = 48;
  CHECK(values(p, 1) == first);
  CHECK(values(p, 2) != first);
  CHECK(values({"fc2.weight", {20, 30}, beginning::normal, 0.5}, 1) != first);
  CHECK(values({"fc1.weight", {30, 20}, beginning::normal, 0.5}, 1) != first);
  double sum = 0, squares = 0;
  for (const float x : first) {
    sum += static_cast<double>(x);
    squares += static_cast<double>(x) * static_cast<double>(x);
  }
  CHECK(std::abs(sum / 600) < 0.06);
  CHECK(std::abs(squares / 600 - 0.25) < 0.04);
  for (const float x : values({"w", {500}, beginning::uniform, 0.5}, 3))
    CHECK(std::abs(x) <= 0.5F);
}

} // namespace troupe::network_test
