// SPDX-License-Identifier: BSD-3-Clause
// Initial values of every parameter, compared with the definitions of GPT-2 and
// PyTorch.

#include "models/network.hpp"
#include "models/weights.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>

namespace troupe::initial_values_test {

namespace {

/// Initial values of a network, by the parameter's name.
std::map<std::string, std::vector<float>> first_values(const network<float>& whole) {
  std::map<std::string, std::vector<float>> result;
  const auto source = initial_weights(whole, 3);
  for (std::size_t l = 0; l < whole.layers.size(); ++l) {
    std::vector<float> bucket(static_cast<std::size_t>(whole.layers[l]->bucket()));
    source(l, bucket.data());
    for (const auto& p : whole.layers[l]->parameters())
      result[p.name] = {bucket.begin() + p.offset,
                        bucket.begin() + p.offset + p.values()};
  }
  return result;
}

struct moments {
  double mean, deviation;
  double within_one; ///< The fraction of values that are within one deviation.
};

moments moments_of(const std::vector<float>& values, double deviation) {
  const auto n = static_cast<double>(values.size());
  double sum = 0, squares = 0, within = 0;
  for (const float value : values) {
    const auto x = static_cast<double>(value);
    sum += x;
    squares += x * x;
    within += std::abs(x) < deviation;
  }
  return {sum / n, std::sqrt(squares / n), within / n};
}

/// Five standard errors of each estimate: a sound generator fails once in millions.
void check_normal(const std::vector<float>& values, double deviation) {
  const auto n = static_cast<double>(values.size());
  const auto [mean, sample, within] = moments_of(values, deviation);
  CHECK(std::abs(mean) < 5 * deviation / std::sqrt(n));
  CHECK(std::abs(sample / deviation - 1) < 5 / std::sqrt(2 * n));
  CHECK(std::abs(within - 0.6827) < 5 * std::sqrt(0.6827 * 0.3173 / n));
}

void check_all(const std::vector<float>& values, float expected) {
  CHECK(std::ranges::count(values, expected)
        == static_cast<std::ptrdiff_t>(values.size()));
}

bool is_gain(const std::string& name) {
  return name.ends_with("ln_1.weight") || name.ends_with("ln_2.weight")
         || name.ends_with("ln_f.weight");
}

} // namespace

// Hugging Face's GPT2PreTrainedModel._init_weights: normal with 0.02, biases 0, gains
// 1; every c_proj.weight is normal with 0.02 / sqrt(2 n_layer).
TEST_CASE("a GPT begins with the deviations of GPT-2", "[initial_values]") {
  const std::string model = GENERATE("gpt", "moe");
  const std::int64_t layers = GENERATE(2, 6);
  const expert_options experts{.count = 3, .shared = true};
  const auto whole = *make_network<float>({model, layers, 32, 2, 40, 50, experts});
  const double residual = 0.02 / std::sqrt(2.0 * static_cast<double>(layers));
  std::map<std::string, int> kinds;
  for (const auto& [name, values] : first_values(whole)) {
    INFO(model << " " << layers << " " << name);
    if (name.ends_with(".bias"))
      ++kinds["bias"], check_all(values, 0);
    else if (is_gain(name))
      ++kinds["gain"], check_all(values, 1);
    else if (name.ends_with("c_proj.weight"))
      ++kinds["residual"], check_normal(values, residual);
    else
      ++kinds["matrix"], check_normal(values, 0.02);
  }
  const int blocks = static_cast<int>(layers), sparse = model == "moe" ? blocks / 2 : 0;
  CHECK(kinds["gain"] == 2 * blocks + 1);
  CHECK(kinds["residual"] == 2 * blocks + 3 * sparse);   // 3 + 1 experts, not 1
  CHECK(kinds["matrix"] == 2 * blocks + 4 * sparse + 3); // routers; wte, wpe, lm_head
}

TEST_CASE("tensor shards begin with their parts of the whole's values",
          "[initial_values]") {
  const model_options options{"gpt", 2, 24, 6, 12, 13};
  const auto whole = *make_network<float>(options);
  const auto source = initial_weights(whole, 3);
  const int count = GENERATE(2, 3);
  const auto shards = *make_shards<float>(options, count);
  for (std::size_t l = 0; l < whole.layers.size(); ++l) {
    const auto& layer_of_all = *whole.layers[l];
    std::vector<float> expected(static_cast<std::size_t>(layer_of_all.bucket()));
    source(l, expected.data());
    std::vector<float> again(expected.size(), -1);
    for (const auto& shard : shards) {
      const auto& part = *shard.layers[l];
      std::vector<float> bucket(static_cast<std::size_t>(part.bucket()));
      extract_shard(layer_of_all, part, expected.data(), bucket.data());
      insert_shard(layer_of_all, part, bucket.data(), again.data());
      for (const auto& p : part.parameters()) {
        CHECK(p.begins == layer_of_all.parameter_called(p.name).begins);
        CHECK(p.scale == layer_of_all.parameter_called(p.name).scale);
      }
    }
    for (const auto& p : layer_of_all.parameters())
      CHECK(std::equal(expected.begin() + p.offset,
                       expected.begin() + p.offset + p.values(),
                       again.begin() + p.offset));
  }
}

// torch.nn.Linear and Conv2d: uniform up to 1 / sqrt(inputs of a unit), biases too.
TEST_CASE("linear and convolution layers begin with the ranges of PyTorch",
          "[initial_values]") {
  const std::string model = GENERATE("lenet", "lenet5");
  const std::map<std::string, double> inputs{{"conv1", 1 * 5 * 5},
                                             {"conv2", 6 * 5 * 5},
                                             {"fc1", model == "lenet" ? 256 : 400},
                                             {"fc2", 120},
                                             {"fc3", 84}};
  for (const auto& [name, values] : first_values(*make_network<float>({model}))) {
    INFO(name);
    const double range = 1 / std::sqrt(inputs.at(name.substr(0, name.find('.'))));
    const auto n = static_cast<double>(values.size());
    CHECK(std::ranges::max(values) <= static_cast<float>(range));
    CHECK(std::ranges::min(values) >= -static_cast<float>(range));
    const auto [mean, deviation, within] = moments_of(values, range / 2);
    CHECK(std::abs(mean) < 5 * range / std::sqrt(3 * n));
    // The square of a uniform value has deviation 2 / sqrt(45) range^2.
    CHECK(std::abs(deviation * deviation / (range * range) - 1.0 / 3)
          < 5 * 2 / std::sqrt(45 * n));
    CHECK(std::abs(within - 0.5) < 5 * 0.5 / std::sqrt(n));
  }
}

} // namespace troupe::initial_values_test
