// SPDX-License-Identifier: BSD-3-Clause
// Compares trainings with PyTorch's results in float64. golden/runs/README.md lists the
// trainings and describes the computation.

#include "tests/experiments/run_program.hpp"

#include <catch2/catch_test_macros.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <map>

namespace troupe::goldens_test {

using nlohmann::json;

namespace {

const std::filesystem::path cases = TROUPE_RUNS;

// troupe computes in fp32, and in another order where replicas or shards add.
constexpr double loss_apart = 5e-6;      // over the larger of the loss and 1
constexpr double parameter_apart = 2e-5; // over the tensor's largest value
constexpr double movement_apart = 2e-4;  // norm, over that of how far the tensor moved

// The limits in bf16 are those of golden/runs/bf16.json times this factor. The number
// and size of roundings are equal, but sums in another order round some values the
// other way.
constexpr double bf16_more = 1.5;

// Losses that miss that limit, with another limit for each: the largest of 64
// computations by PyTorch (bf16.py draws). There, values between two bf16 values round
// either way. Of the 64 computations 31, 14 and 37 miss the limit too; the order of
// sums decides which. `pipedream_every3` misses the limit in one order alone, of
// unoptimized code with instructions for bf16. Its loss differs by 5.84e-4; 5 of 2,500
// computations by PyTorch differ by as much or more. In all, 151 of the 2,500 miss the
// limit, and the largest difference is 6.39e-4. In this build the limit is twice as
// large.
const std::map<std::string, double> bf16_misses{{"gpt_odd", 3.00e-4},
                                                {"gpt_tied", 1.11e-3},
#ifdef TROUPE_SANITIZED
                                                {"pipedream_every3", 6.34e-4},
#endif
                                                {"2bw", 4.96e-4}};

struct tensor {
  json shape;
  std::vector<float> values;
};

/// Reads a safetensors file, without any of the project's code.
std::map<std::string, tensor> tensors_of(const std::filesystem::path& path) {
  const auto file = content_of(path);
  std::uint64_t header = 0;
  std::memcpy(&header, file.data(), sizeof header);
  const auto about_all = json::parse(file.substr(sizeof header, header));
  const auto* const data = file.data() + sizeof header + header;
  std::map<std::string, tensor> result;
  for (const auto& [name, about] : about_all.items()) {
    if (name == "__metadata__")
      continue;
    const std::size_t begin = about["data_offsets"][0], end = about["data_offsets"][1];
    auto& t = result[name] = {about["shape"], std::vector<float>((end - begin) / 4)};
    std::memcpy(t.values.data(), data + begin, end - begin);
  }
  return result;
}

/// Whether a value is more than noise. The bias of keys adds the same number to all
/// scores of a query: the bias's exact gradient is 0, and the fp32 gradient is noise.
bool means_something(const std::string& name, std::size_t i, std::size_t values) {
  return !name.ends_with("attn.c_attn.bias") || i < values / 3 || i >= 2 * values / 3;
}

struct differences {
  double parameter; // the largest, over the tensor's largest value
  double movement;
};

differences apart(const std::string& name, const tensor& got, const tensor& want,
                  const tensor& first) {
  double most = 0, largest = 0, apart = 0, norm = 0, moved = 0;
  for (std::size_t i = 0; i < want.values.size(); ++i) {
    if (!means_something(name, i, want.values.size()))
      continue;
    const double a = got.values[i], b = want.values[i], c = first.values[i];
    most = std::max(most, std::isfinite(a) ? std::abs(a - b) : INFINITY);
    largest = std::max(largest, std::abs(b));
    apart += (a - b) * (a - b);
    norm += b * b;
    moved += (b - c) * (b - c);
  }
  // Where a tensor moves little, rounding is most of the movement.
  const double far = std::max(std::sqrt(moved), 2e-3 * std::sqrt(norm));
  return {most / largest, most < INFINITY ? std::sqrt(apart) / far : INFINITY};
}

double loss_difference(const json& got, double want) {
  if (!got.is_number())
    return INFINITY;
  return std::abs(got.get<double>() - want) / std::max(want, 1.0);
}

bool is_loss(const json& got, double want) {
  return loss_difference(got, want) <= loss_apart;
}

void compare_loads(const json& got, const json& want) {
  if (!want.contains("experts")) {
    CHECK(got["experts"].is_null());
    return;
  }
  REQUIRE(got["experts"].size() == want["experts"].size());
  for (std::size_t b = 0; b < want["experts"].size(); ++b)
    for (const char* what : {"loads", "dropped"})
      CHECK(got["experts"][b][what] == want["experts"][b][what]);
}

void compare_results(const json& got, const json& want, bool of_images) {
  REQUIRE(got["loss"].size() == want["loss"].size());
  for (std::size_t i = 0; i < want["loss"].size(); ++i) {
    INFO("loss " << i << " is " << got["loss"][i] << ", not " << want["loss"][i]);
    CHECK(is_loss(got["loss"][i], want["loss"][i]));
  }
  CHECK(got["loss_samples"] == want["loss_samples"]);
  const auto &score = got["evaluation"], &expected = want["evaluation"];
  CHECK(is_loss(score["loss"], expected["loss"]));
  if (of_images) {
    REQUIRE(score["accuracy"].is_number());
    CHECK(std::abs(score["accuracy"].get<double>() - expected["accuracy"].get<double>())
          <= 1e-9);
  } else {
    CHECK(score["accuracy"].is_null());
  }
  compare_loads(got, want);
}

json expected_of(const std::string& name) {
  return json::parse(content_of(cases / name / "expected.json"));
}

/// Returns a case's arguments, without some options and values, and with others.
std::string typed(const json& arguments, const json& variant) {
  std::string result = "train --quiet --json got.json --save got.safetensors";
  const std::vector<std::string> left_out = variant["without"];
  const auto add = [&](std::string word) {
    if (const auto at = word.find("{cases}"); at != std::string::npos)
      word.replace(at, 7, cases.string());
    result += " '" + word + "'";
  };
  bool skips = false;
  for (const std::string word : arguments) {
    if (word.starts_with("--"))
      skips = std::ranges::find(left_out, word) != left_out.end();
    if (!skips)
      add(word);
  }
  for (const std::string word : variant["with"])
    add(word);
  return result;
}

/// A run's results, and the difference of each tensor from the golden file.
struct trained {
  json run;
  std::map<std::string, differences> tensors;
};

trained train(const std::string& name, const json& want, const json& variant) {
  temporary_folder folder;
  const auto command = typed(want["arguments"], variant);
  INFO(name << ": " << command);
  const auto ran = run_program_in(folder, command);
  INFO(ran.err);
  REQUIRE(ran.exit_code == 0);
  trained result{.run = json::parse(content_of(folder.path() / "got.json"))["runs"][0]};
  const auto got = tensors_of(folder.path() / "got.safetensors");
  const auto final = tensors_of(cases / name / "final.safetensors"),
             first = tensors_of(cases / want["init"] / "init.safetensors");
  REQUIRE(got.size() == final.size());
  for (const auto& [tensor_name, expected] : final) {
    REQUIRE(got.contains(tensor_name));
    REQUIRE(got.at(tensor_name).shape == expected.shape);
    result.tensors[tensor_name] =
      apart(tensor_name, got.at(tensor_name), expected, first.at(tensor_name));
  }
  return result;
}

void check(const std::string& name, const json& want, const json& variant) {
  INFO(name << ": " << variant);
  const auto [run, tensors] = train(name, want, variant);
  const auto& typed_words = want["arguments"];
  compare_results(run, want, std::ranges::any_of(typed_words, [](const json& word) {
                    return word == "lenet" || word == "mlp";
                  }));
  for (const auto& [tensor_name, differ] : tensors) {
    INFO(tensor_name);
    CHECK(differ.parameter <= parameter_apart);
    CHECK(differ.movement <= movement_apart);
  }
}

/// Checks a case with --precision bf16.
/// \param rounded differences of the golden training from itself by rounding to bf16
void check_bf16(const std::string& name, const json& rounded) {
  INFO(name);
  const auto want = expected_of(name);
  const auto [run, tensors] =
    train(name, want, {{"without", json::array()}, {"with", {"--precision", "bf16"}}});
  compare_loads(run, want);
  REQUIRE(run["loss"].size() == want["loss"].size());
  double loss = loss_difference(run["evaluation"]["loss"], want["evaluation"]["loss"]);
  for (std::size_t i = 0; i < want["loss"].size(); ++i)
    loss = std::max(loss, loss_difference(run["loss"][i], want["loss"][i]));
  double movement = 0;
  for (const auto& [tensor_name, differ] : tensors)
    movement = std::max(movement, differ.movement);
  INFO("loss " << loss << ", movement " << movement << "; rounded: " << rounded);
  const auto missed = bf16_misses.find(name);
  CHECK(loss <= (missed != bf16_misses.end()
                   ? missed->second
                   : bf16_more * rounded["loss"].get<double>()));
  CHECK(movement <= bf16_more * rounded["movement"].get<double>());
  CHECK(movement > movement_apart); // a smaller difference would be fp32
}

/// The cases whose names begin with one of `beginnings`.
std::vector<std::string> cases_of(const std::vector<std::string>& beginnings) {
  std::vector<std::string> result;
  for (const auto& entry : std::filesystem::directory_iterator{cases}) {
    const auto name = entry.path().filename().string();
    if (entry.is_directory() && std::ranges::any_of(beginnings, [&](const auto& b) {
          return name.starts_with(b);
        }))
      result.push_back(name);
  }
  std::ranges::sort(result);
  return result;
}

const std::vector<std::string> flush{"gpt_"}, stale{"pipedream", "2bw", "ampnet"},
  experts{"moe_"}, images{"lenet", "mlp"}, optimizers{"nadam_"};

void check_as_written(const std::vector<std::string>& beginnings) {
  for (const auto& name : cases_of(beginnings))
    check(name, expected_of(name),
          {{"without", json::array()}, {"with", json::array()}});
}

/// Checks all variants of cases; builds with sanitizers check one variant in `every`.
void check_variants(const std::vector<std::string>& beginnings, std::size_t every) {
#ifndef TROUPE_SANITIZED
  every = 1;
#endif
  std::size_t number = 0;
  for (const auto& name : cases_of(beginnings)) {
    const auto want = expected_of(name);
    for (const auto& variant : want["variants"])
      if (number++ % every == 0)
        check(name, want, variant);
  }
}

} // namespace

TEST_CASE("every golden is one of a GPT, of stale weights, of experts, of images or of "
          "an optimizer",
          "[golden]") {
  std::size_t all = 0;
  for (const auto& some : {flush, stale, experts, images, optimizers}) {
    CHECK_FALSE(cases_of(some).empty());
    all += cases_of(some).size();
  }
  CHECK(all == cases_of({""}).size());
}

TEST_CASE("a GPT trains as PyTorch computed it", "[golden]") {
  check_as_written(flush);
}

TEST_CASE("stale weights train a GPT as PyTorch computed it", "[golden]") {
  check_as_written(stale);
}

TEST_CASE("experts and their gates train as PyTorch computed it", "[golden]") {
  check_as_written(experts);
}

TEST_CASE("LeNet and an MLP train as PyTorch computed it", "[golden]") {
  check_as_written(images);
}

TEST_CASE("optimizers train a GPT as PyTorch computed it", "[golden]") {
  check_as_written(optimizers);
}

TEST_CASE("other schedules, clocks and meshes train a GPT by any optimizer to the same",
          "[golden]") {
  check_variants(optimizers, 3);
}

TEST_CASE("other schedules, clocks and meshes train a GPT to the same", "[golden]") {
  check_variants(flush, 6);
}

TEST_CASE("other clocks and meshes train a GPT of stale weights to the same",
          "[golden]") {
  check_variants(stale, 3);
}

TEST_CASE("other schedules and meshes train experts to the same", "[golden]") {
  check_variants(experts, 6);
}

TEST_CASE("other schedules train images to the same", "[golden]") {
  check_variants(images, 3);
}

TEST_CASE("goldens in bf16 are as far from PyTorch as PyTorch that rounds to bf16",
          "[golden]") {
  const auto rounded = json::parse(content_of(TROUPE_GOLDEN "/runs/bf16.json"));
  for (const auto& [name, differ] : rounded.items())
    check_bf16(name, differ);
  for (const auto& some : {flush, stale, images})
    for (const auto& name : cases_of(some))
      CHECK(rounded.contains(name));
  for (const char* name : {"moe_switch_clear", "moe_gshard_clear"})
    CHECK(rounded.contains(name));
}

TEST_CASE("short runs in bf16 round where PyTorch does that rounds to bf16",
          "[golden]") {
  const auto losses = json::parse(content_of(TROUPE_GOLDEN "/runs/bf16_short.json"));
  REQUIRE(losses.size() == cases_of({""}).size() - cases_of(optimizers).size());
  std::vector<std::string> others; // cases with a value between two bf16 values
  for (const auto& [name, want] : losses.items()) {
    const auto [run, tensors] =
      train(name, expected_of(name),
            {{"without", {"--batch", "--microbatches", "--steps"}},
             {"with",
              {"--batch", "3", "--microbatches", "3", "--steps", "2", "--precision",
               "bf16"}}});
    REQUIRE(run["loss"].size() == want.size());
    double most = 0;
    for (std::size_t i = 0; i < want.size(); ++i)
      most = std::max(most, loss_difference(run["loss"][i], want[i]));
    if (most > 1e-6)
      others.push_back(name + " by " + std::to_string(most));
  }
  INFO(json(others));
  // With noise as small as fp32's, PyTorch itself keeps the losses of 12 of 25 cases.
  // Where troupe rounds at other places than PyTorch, no case of that network keeps its
  // losses.
  CHECK(3 * others.size() <= 2 * losses.size());
}

} // namespace troupe::goldens_test
