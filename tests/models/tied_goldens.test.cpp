// SPDX-License-Identifier: BSD-3-Clause
// Tied GPTs that PyTorch trained in float64 (golden/runs/README.md), by the plain loop.

#include "models/data/open_data.hpp"
#include "models/evaluation.hpp"
#include "models/plain_loop.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <nlohmann/json.hpp>

#include <cmath>
#include <fstream>
#include <map>

namespace troupe::tied_goldens_test {

using nlohmann::json;

namespace {

const std::filesystem::path cases = TROUPE_RUNS;

// Tolerances as in tests/experiments/goldens.test.cpp.
constexpr double loss_apart = 5e-6;      // relative to the larger of the loss and 1
constexpr double parameter_apart = 2e-5; // relative to the tensor's largest value
constexpr double movement_apart = 2e-4;  // norm, relative to the tensor's movement

/// The words of a command line: an option's value, or an empty text for a flag.
std::map<std::string, std::string> options_in(const json& arguments) {
  std::map<std::string, std::string> result;
  std::string name;
  for (const std::string word : arguments)
    if (word.starts_with("--"))
      result[name = word];
    else
      result[name] = word;
  return result;
}

optimizer_options optimizer_in(std::map<std::string, std::string>& said) {
  optimizer_options o;
  o.name = said.at("--optimizer");
  o.rate = std::stod(said.at("--lr"));
  o.weight_decay = std::stod(said.at("--weight-decay"));
  o.clip = std::stod(said.at("--clip"));
  if (said.contains("--momentum"))
    o.momentum = std::stod(said["--momentum"]);
  if (said.contains("--eps"))
    o.epsilon = std::stod(said["--eps"]);
  if (const auto betas = said["--betas"]; !betas.empty()) {
    o.beta1 = std::stod(betas);
    o.beta2 = std::stod(betas.substr(betas.find(',') + 1));
  }
  if (const auto rates = said["--lr-schedule"]; !rates.empty())
    o.schedule = *rate_schedule::parse(rates);
  return o;
}

std::vector<std::vector<float>> read(const std::filesystem::path& path,
                                     const network<float>& whole) {
  const auto weights = weights_from(path, whole);
  if (!weights)
    FAIL(weights.error());
  std::vector<std::vector<float>> result;
  for (std::size_t l = 0; l < whole.layers.size(); ++l) {
    result.emplace_back(static_cast<std::size_t>(whole.layers[l]->bucket()));
    (*weights)(l, result.back().data());
  }
  return result;
}

/// Compares parameter p in the layer's bucket with PyTorch's values, relative to the
/// distance from the initial values.
void compare(const parameter& p, const std::vector<float>& got,
             const std::vector<float>& want, const std::vector<float>& first) {
  double most = 0, largest = 0, apart = 0, norm = 0, moved = 0;
  for (std::int64_t i = 0; i < p.values(); ++i) {
    // The gradient of the keys' bias is 0, so fp32 computes only noise.
    if (p.name.ends_with("attn.c_attn.bias") && i >= p.values() / 3
        && i < 2 * p.values() / 3)
      continue;
    const auto at = static_cast<std::size_t>(p.offset + i);
    const double a = got[at], b = want[at], c = first[at];
    most = std::max(most, std::isfinite(a) ? std::abs(a - b) : INFINITY);
    largest = std::max(largest, std::abs(b));
    apart += (a - b) * (a - b);
    norm += b * b;
    moved += (b - c) * (b - c);
  }
  INFO(p.name);
  CHECK(most <= parameter_apart * largest);
  // If a tensor moves little, most of the difference is rounding.
  CHECK(std::sqrt(apart)
        <= movement_apart * std::max(std::sqrt(moved), 2e-3 * std::sqrt(norm)));
}

} // namespace

TEST_CASE("a tied GPT trains as PyTorch computed it", "[tied]") {
  const std::string name = GENERATE("gpt_tied", "2bw_tied");
  const int replicas = GENERATE(1, 2);
  std::ifstream file{cases / name / "expected.json"};
  const auto want = json::parse(file);
  auto said = options_in(want["arguments"]);
  const auto number = [&](const char* option) { return std::stoi(said.at(option)); };
  const auto whole = *make_network<float>({.model = said.at("--model"),
                                           .layers = number("--layers"),
                                           .width = number("--d-model"),
                                           .heads = number("--heads"),
                                           .length = number("--seq"),
                                           .words = number("--vocab"),
                                           .tied = said.contains("--tied")});
  REQUIRE(whole.tied().has_value());
  const auto data =
    *open_data("text:" + (cases / name / "text.bin").string() + ",order=sequential",
               whole.options, 1);
  const auto first = cases / name / "init.safetensors";
  plain_plan plan{.whole = whole,
                  .first_layers = *cut(whole, number("--stages"), {}),
                  .data = *data,
                  .batches = {number("--batch"), number("--microbatches")},
                  .steps = number("--steps"),
                  .replicas = replicas,
                  .optimizer = optimizer_in(said),
                  .weights = *weights_from(first, whole)};
  if (said.at("--schedule") == "2bw")
    plan.reads = [each = number("--microbatches") / replicas](int, int k) {
      return std::max(0, k / each - 1);
    };
  const auto got = train_plainly(plan);
  const auto is_loss = [](double loss, double expected) {
    return std::abs(loss - expected) <= loss_apart * std::max(expected, 1.0);
  };
  const std::vector<double> losses = want["loss"];
  REQUIRE(got.loss.size() == losses.size());
  for (std::size_t i = 0; i < losses.size(); ++i) {
    INFO("loss " << i << " is " << got.loss[i] << ", not " << losses[i]);
    CHECK(is_loss(got.loss[i], losses[i]));
  }
  const auto final = read(cases / name / "final.safetensors", whole),
             begun = read(first, whole);
  for (std::size_t l = 0; l < whole.layers.size(); ++l)
    for (const auto& p : whole.layers[l]->parameters())
      compare(p, got.parameters[l], final[l], begun[l]);
  evaluator held_out{whole, *data, 1000, 8, 1};
  CHECK(is_loss(held_out.evaluate(readable(got.parameters))->loss,
                want["evaluation"]["loss"].get<double>()));
}

} // namespace troupe::tied_goldens_test
