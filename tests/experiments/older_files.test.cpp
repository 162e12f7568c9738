// SPDX-License-Identifier: BSD-3-Clause
// Files of the version before names were changed
// (tests/golden/older_files.tar.gz): a checkpoint, weights and results. The
// training of these files is repeated and resumed.

#include "tests/experiments/run_program.hpp"

#include <catch2/catch_test_macros.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <set>
#include <string>

namespace troupe::older_files_test {

using nlohmann::json;
namespace fs = std::filesystem;

namespace {

const fs::path older{TROUPE_OLDER_FILES};

/// The command that wrote the files.
std::string command() {
  auto result = content_of(older / "command");
  std::erase(result, '\n');
  return result;
}

/// A folder with the text of the training.
void copy_text(const temporary_folder& folder) {
  fs::copy(older / "text.txt", folder.path() / "text.txt");
}

void run(const temporary_folder& folder, const std::string& words) {
  const auto ended = run_program_in(folder, words);
  INFO(words << '\n' << ended.err);
  REQUIRE(ended.exit_code == 0);
}

/// The paths of all values of a document, with the kind of each. Entries of a list
/// share one path.
void add_paths(const json& at, const std::string& path, std::set<std::string>& paths) {
  if (at.is_object())
    for (const auto& [key, value] : at.items())
      add_paths(value, path + "." + key, paths);
  else if (at.is_array() && !at.empty())
    for (const auto& value : at)
      add_paths(value, path + "[]", paths);
  else
    paths.insert(path
                 + (at.is_number() ? " number" : " " + std::string{at.type_name()}));
}

std::set<std::string> paths_of(const json& document) {
  std::set<std::string> result;
  add_paths(document, "", result);
  return result;
}

/// The paths of `all` that `some` lacks, one per line.
std::string missing(const std::set<std::string>& all,
                    const std::set<std::string>& some) {
  std::string result;
  for (const auto& path : all)
    if (!some.contains(path))
      result += path + '\n';
  return result;
}

/// JSON of a checkpoint that counts the optimizer's state arrays, with the name that
/// SGD's array has now.
json with_names(const json& document) {
  auto text = document.dump();
  for (const auto& [counted, named] :
       {std::pair<std::string, std::string>{"moment-0", "velocity"},
        {R"("moments":1)", R"("state":["velocity"])"},
        {R"("troupe_checkpoint":2)", R"("troupe_checkpoint":3)"}})
    for (auto at = text.find(counted); at != std::string::npos; at = text.find(counted))
      text.replace(at, counted.size(), named);
  return json::parse(text);
}

/// Checks that two safetensors files have the same arrays and nearly the same values:
/// the order of sums differs between processors.
void check_arrays(const fs::path& got, const fs::path& want) {
  INFO(got);
  const auto ours = content_of(got), theirs = content_of(want);
  const auto parts_of = [](const std::string& file) {
    std::uint64_t header = 0;
    std::memcpy(&header, file.data(), sizeof header);
    auto arrays = json::parse(file.substr(sizeof header, header));
    arrays.erase("__metadata__");
    return std::pair{with_names(arrays), file.substr(sizeof header + header)};
  };
  const auto [our_arrays, our_values] = parts_of(ours);
  const auto [their_arrays, their_values] = parts_of(theirs);
  CHECK(our_arrays == their_arrays);
  REQUIRE(our_values.size() == their_values.size());
  double largest = 0;
  for (std::size_t at = 0; at < their_values.size(); at += sizeof(float)) {
    float a = 0, b = 0;
    std::memcpy(&a, our_values.data() + at, sizeof a);
    std::memcpy(&b, their_values.data() + at, sizeof b);
    largest = std::isfinite(a) ? std::max(largest, std::abs(double{a} - b)) : INFINITY;
  }
  CHECK(largest < 1e-5);
}

/// A manifest without the fields that depend on the order of sums and on the machine.
json common_manifest(const fs::path& batch) {
  auto result = json::parse(content_of(batch / "manifest.json"));
  result.erase("xxh3");
  for (auto& file : result["files"])
    file.erase("xxh3");
  return result;
}

bool near(double a, double b) {
  return std::abs(a - b) < 1e-5;
}

} // namespace

TEST_CASE("a checkpoint of the version before names were changed is resumed",
          "[programs][older]") {
  const temporary_folder folder;
  copy_text(folder);
  fs::create_directory(folder.path() / "c");
  fs::copy(older / "c/batch-2", folder.path() / "c/batch-2",
           fs::copy_options::recursive);
  run(folder, "train --resume c --stages 2 --microbatches 3 --checkpoint c "
              "--checkpoint-every 2 --quiet");
  for (const auto& entry : fs::directory_iterator{older / "c/batch-4"})
    if (entry.path().extension() == ".safetensors")
      check_arrays(folder.path() / "c/batch-4" / entry.path().filename(), entry.path());
  CHECK(common_manifest(folder.path() / "c/batch-4")
        == with_names(common_manifest(older / "c/batch-4")));
}

TEST_CASE("weights of the version before names were changed are evaluated",
          "[programs][older]") {
  const temporary_folder folder;
  copy_text(folder);
  run(folder, "evaluate --quiet --json got.json --weights "
                + (older / "weights.safetensors").string());
  const auto got = json::parse(content_of(folder.path() / "got.json")),
             want = json::parse(content_of(older / "evaluation.json"));
  CHECK(near(got["loss"], want["loss"]));
  CHECK(got["predictions"] == want["predictions"]);
  CHECK(paths_of(got) == paths_of(want));
}

TEST_CASE("results and weights are those of the version before names were changed",
          "[programs][older]") {
  const temporary_folder folder;
  copy_text(folder);
  run(folder, command());
  check_arrays(folder.path() / "weights.safetensors", older / "weights.safetensors");
  const auto got = json::parse(content_of(folder.path() / "results.json")),
             want = json::parse(content_of(older / "results.json"));
  REQUIRE(missing(paths_of(want), paths_of(got)) == "");
  const auto &now = got["runs"][0], &then = want["runs"][0];
  REQUIRE(now["loss"].size() == then["loss"].size());
  for (std::size_t i = 0; i < then["loss"].size(); ++i)
    CHECK(near(now["loss"][i], then["loss"][i]));
  for (const auto* const key : {"updates", "samples", "peak_activations", "bytes_moved",
                                "weight_versions", "staleness"}) {
    INFO(key);
    CHECK(now[key] == then[key]);
  }
}

} // namespace troupe::older_files_test
