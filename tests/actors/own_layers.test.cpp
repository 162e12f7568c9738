// SPDX-License-Identifier: BSD-3-Clause
// Networks with layers that a user defines.

#include "models/user_layer.hpp"
#include "tests/actors/embedded.hpp"

#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <limits>
#include <memory>

namespace troupe::own_layers_test {

using namespace embedded;
using Catch::Approx;
using Catch::Matchers::ContainsSubstring;

TEST_CASE("layers of one's own learn what ours do", "[embedding]") {
  const auto how = GENERATE(one_f_one_b(), pipedream(), chimera());
  auto ours = images_job({linear("a", 28 * 28, 12, true), linear("b", 12, 9),
                          linear("c", 9, 8), linear("d", 8, 10)});
  ours.pipeline_schedule = how;
  ours.stages = how.name == "chimera" ? 4 : 3;
  auto own = ours;
  own.model = user_network{.layers = {linear("a", 28 * 28, 12, true),
                                      std::make_shared<plain_linear>("b", 12, 9),
                                      std::make_shared<plain_linear>("c", 9, 8),
                                      linear("d", 8, 10)}};
  const auto a = finished(ours), b = finished(own);
  REQUIRE(a.loss.size() == b.loss.size());
  for (std::size_t i = 0; i < a.loss.size(); ++i)
    CHECK(b.loss[i] == Approx(a.loss[i]).epsilon(1e-5));
  REQUIRE(a.parameters.size() == b.parameters.size());
  for (const auto& [name, ours_of_name] : a.parameters)
    for (std::size_t i = 0; i < ours_of_name.values.size(); ++i)
      REQUIRE(b.parameters.at(name).values[i]
              == Approx(ours_of_name.values[i]).margin(2e-4));
}

TEST_CASE("a first layer of one's own has no input gradient to write", "[embedding]") {
  const auto job =
    images_job({std::make_shared<plain_linear>("a", 28 * 28, 8), linear("b", 8, 8),
                std::make_shared<plain_linear>("c", 8, 10)});
  const auto result = finished(job);
  CHECK(result.loss.back() < result.loss.front());
}

TEST_CASE("layers that do not fit together are refused with their numbers",
          "[embedding]") {
  CHECK(refusal_of(images_job({linear("a", 784, 8), linear("b", 9, 10)}))
        == "layer 1 takes 9 values a sample, but layer 0 gives 8");
  CHECK_THAT(refusal_of(images_job({linear("a", 784, 8), linear("a", 8, 10)})),
             ContainsSubstring("layer 0 and layer 1 both have a parameter called "
                               "'a.weight'"));
  CHECK_THAT(refusal_of(images_job({linear("a", 784, 10)})),
             ContainsSubstring("at most 1 stages"));
  CHECK_THAT(refusal_of(images_job({})), ContainsSubstring("at least one layer"));
  auto uneven =
    images_job({linear("a", 784, 8), linear("b", 8, 8), linear("c", 8, 10)});
  std::get<user_network>(uneven.model).predictions = 3;
  CHECK_THAT(refusal_of(uneven), ContainsSubstring("3 predictions"));
}

TEST_CASE("a network of tokens may begin with a layer of one's own, and no other",
          "[embedding]") {
  struct mean_token : user_layer {
    mean_token() : user_layer({}, 4, 4) {}
    double operations() const override { return 4; }
    void forward(const user_pass& p) const override {
      CHECK(p.x == nullptr);
      for (std::int64_t i = 0; i < p.samples * 4; ++i)
        p.y[i] = static_cast<float>(p.tokens[i]) / 11;
    }
    void input_gradient(const user_pass& p) const override { CHECK(p.dx == nullptr); }
    void weight_gradient(const user_pass&) const override {}
  };
  auto job = small_job();
  job.stages = 2;
  job.model =
    user_network{.layers = {std::make_shared<mean_token>(), linear("a", 4, 44)},
                 .predictions = 4,
                 .reads_tokens = true};
  CHECK(finished(job).loss.size() == 3);
  std::get<user_network>(job.model).layers[0] = linear("b", 4, 4);
  CHECK_THAT(refusal_of(job), ContainsSubstring("must begin with a user_layer"));
}

TEST_CASE("layers that no memory or file can hold are refused", "[embedding]") {
  constexpr auto huge = std::int64_t{1} << 40;
  const auto with = [](std::vector<layer_tensor> parameters) {
    struct any : user_layer {
      using user_layer::user_layer;
      double operations() const override { return 1; }
      void forward(const user_pass&) const override {}
      void input_gradient(const user_pass&) const override {}
      void weight_gradient(const user_pass&) const override {}
    };
    return std::make_shared<any>(std::move(parameters), 8, 8);
  };
  CHECK_THROWS_WITH(with({{"a", {huge, huge}}}),
                    "parameter 'a' has more than 2^40 values");
  CHECK_THROWS_WITH(linear("a", huge, huge),
                    "a layer's inputs times outputs are more than 2^40");
  for (const char* name : {"", "__metadata__", "two words", "\xff"})
    CHECK_THAT(refusal_of(images_job(
                 {linear("a", 784, 8), with({{name, {2}}}), linear("c", 8, 10)})),
               ContainsSubstring("has a parameter with an invalid name"));

  struct greedy : plain_linear {
    explicit greedy(std::int64_t values) : plain_linear("b", 8, 8), values_(values) {}
    buffer_sizes buffers_for(std::int64_t) const override { return {.saved = values_}; }
    std::int64_t values_;
  };
  for (const auto values :
       {std::int64_t{-1}, huge + 1, std::numeric_limits<std::int64_t>::max()})
    CHECK_THAT(
      refusal_of(images_job(
        {linear("a", 784, 8), std::make_shared<greedy>(values), linear("c", 8, 10)})),
      ContainsSubstring("buffers_for"));
}

} // namespace troupe::own_layers_test
