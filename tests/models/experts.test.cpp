// SPDX-License-Identifier: BSD-3-Clause
// Layers with experts compared with layers without experts.

#include "models/layers/moe.hpp"
#include "models/network.hpp"
#include "tests/kernels/numbers.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <limits>

namespace troupe::experts_test {

using Catch::Matchers::ContainsSubstring;

TEST_CASE("one expert that takes all is a feed-forward half", "[experts]") {
  const gpt_shape dims{2, 8, 2, 5, 11};
  const std::int64_t samples = 3;
  const auto dense = feed_forward_layer<double>(dims, 1);
  const auto moe =
    moe_layer<double>(dims, 1, {.count = 1, .capacity = 1}, expert_location::local);
  const auto values = random_values<double>(dense->bucket(), 1);
  std::vector<double> bucket(static_cast<std::size_t>(moe->bucket()));
  const auto copy = [&](std::size_t from, std::size_t to) { // parameter by parameter
    const auto &a = dense->parameters()[from], &b = moe->parameters()[to];
    REQUIRE(a.values() == b.values());
    std::copy_n(values.begin() + a.offset, a.values(), bucket.begin() + b.offset);
  };
  for (std::size_t i = 0; i < 6; ++i) // the router comes after the norm
    copy(i, i < 2 ? i : i + 1);
  const auto run = [&](const layer<double>& l, const std::vector<double>& parameters) {
    const auto x = random_values<double>(samples * l.input(), 2);
    const auto sizes = l.sizes(samples, 1);
    std::vector<double> y(x.size()), saved(static_cast<std::size_t>(sizes.saved)),
      scratch(static_cast<std::size_t>(sizes.scratch));
    stream on;
    l.forward({.samples = samples,
               .x = x.data(),
               .y = y.data(),
               .saved = saved.data(),
               .parameters = parameters.data(),
               .scratch = scratch.data(),
               .compute_stream = &on});
    return y;
  };
  CHECK(relative_difference(run(*moe, bucket), run(*dense, values)) < 1e-12);
}

TEST_CASE("every second block of moe has experts", "[experts]") {
  const auto whole =
    *make_network<float>({"moe", 4, 8, 2, 4, 5, {.count = 3, .shared = true}});
  REQUIRE(whole.experts.size() == 6);
  CHECK(whole.experts.front().of_layer == 4); // embedding, block 0, attention 1
  CHECK(whole.experts.back().index == 2);
  const auto without =
    make_without_experts<float>({"moe", 4, 8, 2, 4, 5, {.count = 3, .shared = true}});
  std::int64_t of_experts = 0;
  for (const auto& expert : whole.experts)
    for (const auto& p : expert.expert->parameters())
      of_experts += p.values();
  CHECK(without.values() + of_experts == whole.values());
  for (const auto& expert : whole.experts)
    for (const auto& p : expert.expert->parameters())
      CHECK(whole.layers[expert.of_layer]->parameter_called(p.name).dims == p.dims);
}

TEST_CASE("capacity is over an even share, rounded up, and never above all",
          "[experts]") {
  expert_options experts{.count = 8, .chosen = 1, .capacity = 1.25};
  CHECK(experts.capacity_of(64) == 10);
  CHECK(experts.capacity_of(65) == 11);
  experts.chosen = 2;
  CHECK(experts.capacity_of(64) == 20);
  experts.capacity = 100;
  CHECK(experts.capacity_of(64) == 64);
}

TEST_CASE("experts that cannot be are refused", "[experts]") {
  const auto refusal_of = [](expert_options experts, std::int64_t layers = 2) {
    return make_network<float>({"moe", layers, 8, 2, 4, 5, experts}).error();
  };
  CHECK_THAT(refusal_of({.count = 0}), ContainsSubstring("has 1 to 1,024"));
  CHECK_THAT(refusal_of({.count = 2, .chosen = 3}),
             ContainsSubstring("--experts 2 allows 1 to 2"));
  CHECK_THAT(refusal_of({.capacity = 0}), ContainsSubstring("above 0"));
  CHECK_THAT(refusal_of({.noise = std::numeric_limits<double>::quiet_NaN()}),
             ContainsSubstring("gate-noise"));
  CHECK_THAT(refusal_of({}, 1), ContainsSubstring("at least 2 blocks"));
}

} // namespace troupe::experts_test
