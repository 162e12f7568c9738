// SPDX-License-Identifier: BSD-3-Clause
#include "models/optimizer.hpp"

#include "models/layers/linear.hpp"
#include "models/optimizer_catalog.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <cmath>

namespace troupe::optimizer_test {

namespace {

/// A layer with a (2, 2) matrix and a bias.
layer_list<float> two_parameters() {
  return {linear_layer<float>("fc", 2, 2, false)};
}

/// One parameter value after updates with gradient 1 a sample.
std::vector<float> after(const optimizer_options& options, int updates) {
  memory_account account;
  const auto layers = two_parameters();
  stream on;
  optimizer o{options, layers, 1000, account};
  const auto values = static_cast<std::size_t>(layers.front()->bucket());
  std::vector<float> p(values, 1);
  const std::vector<float> sum(values, 10);
  for (int i = 0; i < updates; ++i)
    o.update(10, 1, {sum.data()}, {p.data()}, {p.data()}, on);
  CHECK(o.samples() == 10 * updates);
  return {p[0], p[16]};
}

} // namespace

TEST_CASE("the gradient of an update is the mean over its samples", "[optimizer]") {
  optimizer_options sgd{.name = "sgd", .rate = 0.25};
  CHECK(after(sgd, 1)[0] == 0.75F);
  CHECK(after(sgd, 2)[0] == 0.5F);
  sgd.momentum = 0.5;
  CHECK(after(sgd, 2)[0] == 0.75F - 0.25F * 1.5F);
}

TEST_CASE("weight decay spares biases only when told to", "[optimizer]") {
  optimizer_options sgd{.name = "sgd", .rate = 0.5, .weight_decay = 0.5};
  CHECK(after(sgd, 1) == std::vector<float>{0.25F, 0.25F});
  sgd.decay_only_matrices = true;
  CHECK(after(sgd, 1) == std::vector<float>{0.25F, 0.5F});
}

TEST_CASE("optimizer state is as large as its kind needs", "[optimizer]") {
  CHECK(optimizer::state_size({.name = "sgd"}) == 0);
  CHECK(optimizer::state_size({.name = "sgd", .momentum = 0.9}) == 1);
  CHECK(optimizer::state_size({.name = "adamw"}) == 2);
  memory_account account;
  const auto layers = two_parameters();
  const optimizer o{{}, layers, 1, account};
  CHECK(account.peak() == 2 * 4 * layers.front()->bucket());
}

TEST_CASE("rates run over samples", "[optimizer]") {
  const auto rate = [](const char* text, std::int64_t first, std::int64_t last) {
    return rate_schedule::parse(text)->factor(first, last, 1000);
  };
  CHECK(rate("constant", 0, 10) == 1);
  CHECK(rate("warmup=100", 0, 10) == 0.1);
  CHECK(rate("warmup=100", 90, 100) == 1);
  CHECK(rate("constant,warmup=100", 500, 510) == 1);
  CHECK(rate("cosine", 0, 10) == 1);
  CHECK(std::abs(rate("cosine", 500, 510) - 0.5) < 1e-12);
  CHECK(rate("cosine", 1000, 1010) == 0);
  CHECK(rate("cosine,floor=0.1", 1000, 1010) == 0.1);
  CHECK(std::abs(rate("cosine,warmup=200", 600, 610) - 0.5) < 1e-12);
  for (const char* bad :
       {"linear", "cosine,floor=2", "warmup=-1", "warmup=x", "warmup", "floor=0.1x",
        "constant,floor=0.5", "floor=0.5", "cosine,constant", "cosine,",
        "cosine,warmup=1,warmup=2", "cosine,warmup=+1", "cosine,warmup= 1", ""})
    CHECK_THAT(rate_schedule::parse(bad).error(),
               Catch::Matchers::ContainsSubstring("write constant or cosine"));
}

TEST_CASE("clipping is PyTorch's", "[optimizer]") {
  CHECK(clip_factor(0, 100) == 1);
  CHECK(clip_factor(1, 0.5) == 1);
  CHECK(clip_factor(1, 2) == 1 / (2 + 1e-6));
}

TEST_CASE("an update of shared parameters is an update, to the bit", "[optimizer]") {
  const layer_list<float> layers{linear_layer<float>("fc", 13, 17, false)};
  const auto values = static_cast<std::size_t>(layers.front()->bucket());
  std::vector<float> alone(values), gradient(values);
  for (std::size_t i = 0; i < values; ++i) {
    alone[i] = std::sin(static_cast<float>(i));
    gradient[i] = std::cos(static_cast<float>(3 * i));
  }
  auto shared = alone;
  memory_account account;
  for (const auto& name : optimizer_names()) {
    const optimizer_options options{.name = name,
                                    .rate = 0.1,
                                    .schedule = {.cosine = true},
                                    .momentum = 0.9,
                                    .weight_decay = 0.1};
    optimizer a{options, layers, 100, account}, b{options, layers, 100, account};
    stream on;
    for (std::int64_t first = 0; first < 30; first += 10) {
      a.update(10, 0.5, {gradient.data()}, {alone.data()}, {alone.data()}, on);
      b.update_shared(first, 10, 0.5, {gradient.data()}, {shared.data()}, on);
    }
    CHECK(alone == shared);
    CHECK(b.samples() == 30);
  }
}

} // namespace troupe::optimizer_test
