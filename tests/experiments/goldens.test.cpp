// Trainings that PyTorch computed in float64: golden/runs/README.md says which, and
// how.

#include "tests/experiments/run_program.hpp"

#include <catch2/catch_test_macros.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <map>

using nlohmann::json;

namespace {

const std::filesystem::path cases = TROUPE_GOLDEN "/runs";

// troupe computes in fp32, and where replicas or shards add, in another order.
constexpr double loss_apart = 5e-6;      // over the larger of the loss and 1
constexpr double parameter_apart = 2e-5; // over the tensor's largest value
constexpr double movement_apart = 2e-4;  // norm, over that of how far the tensor moved

struct tensor {
  json shape;
  std::vector<float> values;
};

/// Reads a safetensors file without any of the project's code.
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

/// Whether a value says something: the bias of keys adds the same to all scores of a
/// query, so that its gradient is 0, and what fp32 makes of it is noise.
bool means_something(const std::string& name, std::size_t i, std::size_t values) {
  return !name.ends_with("attn.c_attn.bias") || i < values / 3 || i >= 2 * values / 3;
}

void compare(const std::string& name, const tensor& got, const tensor& want,
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
  INFO(name);
  CHECK(most <= parameter_apart * largest);
  // Where little moves, rounding is most of it.
  const double far = std::max(std::sqrt(moved), 2e-3 * std::sqrt(norm));
  CHECK(std::sqrt(apart) <= movement_apart * far);
}

bool is_loss(const json& got, double want) {
  return got.is_number()
         && std::abs(got.get<double>() - want) <= loss_apart * std::max(want, 1.0);
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
  if (!want.contains("experts")) {
    CHECK(got["experts"].is_null());
    return;
  }
  REQUIRE(got["experts"].size() == want["experts"].size());
  for (std::size_t b = 0; b < want["experts"].size(); ++b)
    for (const char* what : {"loads", "dropped"})
      CHECK(got["experts"][b][what] == want["experts"][b][what]);
}

/// The arguments of a case, without some options and their values, and with others.
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

void check(const std::string& name, const json& want, const json& variant) {
  temporary_folder folder;
  const auto command = typed(want["arguments"], variant);
  INFO(name << ": " << command);
  const auto ran = run_program_in(folder, command);
  INFO(ran.err);
  REQUIRE(ran.exit_code == 0);
  const auto& typed_words = want["arguments"];
  compare_results(json::parse(content_of(folder.path() / "got.json"))["runs"][0], want,
                  std::ranges::any_of(typed_words, [](const json& word) {
                    return word == "lenet" || word == "mlp";
                  }));
  const auto got = tensors_of(folder.path() / "got.safetensors");
  const auto final = tensors_of(cases / name / "final.safetensors"),
             first = tensors_of(cases / want["init"] / "init.safetensors");
  REQUIRE(got.size() == final.size());
  for (const auto& [tensor_name, expected] : final) {
    REQUIRE(got.contains(tensor_name));
    REQUIRE(got.at(tensor_name).shape == expected.shape);
    compare(tensor_name, got.at(tensor_name), expected, first.at(tensor_name));
  }
}

/// The cases whose names begin like one of these.
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
  experts{"moe_"}, images{"lenet", "mlp"};

json expected_of(const std::string& name) {
  return json::parse(content_of(cases / name / "expected.json"));
}

void check_as_written(const std::vector<std::string>& beginnings) {
  for (const auto& name : cases_of(beginnings))
    check(name, expected_of(name),
          {{"without", json::array()}, {"with", json::array()}});
}

/// Sanitizers see one variant in `every`, others all.
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

TEST_CASE("every golden is one of a GPT, of stale weights, of experts or of images",
          "[golden]") {
  std::size_t all = 0;
  for (const auto& some : {flush, stale, experts, images}) {
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
