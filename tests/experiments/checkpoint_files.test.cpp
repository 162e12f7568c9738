// SPDX-License-Identifier: BSD-3-Clause
// The files of a checkpoint, read by the format's definition without the project's
// code, and the errors for damaged files.

#include "actors/checkpoints/checkpoint_folders.hpp"
#include "actors/checkpoints/checkpoint_manifest.hpp"
#include "kernels/checksum.hpp"
#include "tests/dice.hpp"
#include "tests/experiments/checkpointed.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <nlohmann/json.hpp>

#include <cctype>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <map>
#include <set>
#include <span>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace troupe::checkpoint_files_test {

using namespace checkpointed;
using Catch::Matchers::ContainsSubstring;
namespace fs = std::filesystem;

namespace {

/// A manifest with a correct checksum, whatever its content.
std::string sealed(nlohmann::json manifest) {
  manifest.erase("xxh3");
  const auto text = manifest.dump();
  troupe::running_checksum sum;
  sum.add(std::as_bytes(std::span{text}));
  manifest["xxh3"] = troupe::text_of_sum(sum.value());
  return manifest.dump();
}

/// A safetensors file, read by the format's definition.
struct raw_safetensors {
  explicit raw_safetensors(const fs::path& path) : bytes(content_of(path)) {
    std::uint64_t length = 0;
    std::memcpy(&length, bytes.data(), sizeof length);
    header = nlohmann::json::parse(bytes.substr(sizeof length, length));
    data = sizeof length + length;
  }

  std::vector<float> values(const std::string& name) const {
    const auto& offsets = header.at(name).at("data_offsets");
    const std::size_t begin = offsets[0], end = offsets[1];
    std::vector<float> result((end - begin) / sizeof(float));
    std::memcpy(result.data(), bytes.data() + data + begin, end - begin);
    return result;
  }

  std::string bytes;
  nlohmann::json header;
  std::size_t data = 0;
};

/// Indices of a manifest tensor's values in the whole parameter, row by row.
std::vector<std::size_t> places_of(const nlohmann::json& t) {
  std::size_t values = 1;
  for (const std::size_t dim : t["shape"])
    values *= dim;
  const std::size_t across = t["shape"].back();
  const auto rows = t.value("rows", std::vector<std::size_t>{0, values / across});
  const auto columns =
    t.value("columns", std::vector<std::vector<std::size_t>>{{0, across}});
  std::vector<std::size_t> result;
  for (auto row = rows[0]; row < rows[1]; ++row)
    for (const auto& range : columns)
      for (auto column = range[0]; column < range[1]; ++column)
        result.push_back(row * across + column);
  const auto first = t.value("first", std::size_t{0});
  const auto count = t.value("values", result.size());
  return {result.begin() + static_cast<std::ptrdiff_t>(first),
          result.begin() + static_cast<std::ptrdiff_t>(first + count)};
}

} // namespace

TEST_CASE("a manifest says where the values of each file belong", "[programs]") {
  const auto* const mesh =
    GENERATE("--stages 2", "--stages 2 --tied", "--mesh tensor=2,pipe=2",
             "--mesh data=2,pipe=2,tensor=2 --exchange zero1",
             "--mesh data=2,pipe=2 --exchange zero3", "--schedule pipedream --stages 4",
             "--model moe --experts 4 --mesh data=2,pipe=2,expert=2");
  temporary_folder folder;
  const auto ran =
    run_program_in(folder, std::string{"train --steps 2 --save w.safetensors "} + mesh
                             + tiny_model + saving);
  INFO(mesh << ": " << ran.err);
  REQUIRE(ran.exit_code == 0);
  const raw_safetensors whole{folder.path() / "w.safetensors"};
  const auto here = folder.path() / "c/batch-2";
  const auto manifest = nlohmann::json::parse(content_of(here / "manifest.json"));
  std::map<std::string, std::map<std::string, int>> known; // number of values, by array
  for (const auto& file : manifest["files"]) {
    const raw_safetensors held{here / file["name"].get<std::string>()};
    REQUIRE(held.header.size() == file["tensors"].size() + 1); // __metadata__
    for (const auto& t : file["tensors"]) {
      const auto values = held.values(t["name"]);
      const std::string name = t["parameter"], array = t["array"];
      INFO(t.dump());
      const auto all = whole.values(name);
      CHECK(t["shape"] == whole.header[name]["shape"]);
      const auto places = places_of(t);
      REQUIRE(places.size() == values.size());
      known[array][name] += static_cast<int>(values.size());
      if (array == "parameters")
        for (std::size_t i = 0; i < values.size(); ++i)
          REQUIRE(values[i] == all.at(places[i]));
    }
  }
  CHECK(known.size() == 3); // at the end no pass reads older versions
  for (const auto* const array : {"parameters", "mean", "square"})
    for (const auto& [name, described] : whole.header.items())
      if (name != "__metadata__")
        CHECK(known[array][name] == static_cast<int>(whole.values(name).size()));
}

TEST_CASE("a checkpoint has the versions that are still read", "[programs]") {
  temporary_folder folder;
  REQUIRE(run_program_in(folder, "train --steps 4 --stages 4 --schedule pipedream"
                                   + tiny_model + saving)
            .exit_code
          == 0);
  const auto manifest =
    nlohmann::json::parse(content_of(folder.path() / "c/batch-2/manifest.json"));
  CHECK(manifest["older_versions"] == 3);
  for (int stage = 0; stage < 4; ++stage) { // stage s of S has S - s versions
    std::set<std::string> arrays;
    for (const auto& t : manifest["files"][static_cast<std::size_t>(stage)]["tensors"])
      arrays.insert(t["array"].get<std::string>());
    CHECK(arrays.size() == static_cast<std::size_t>(2 + 4 - stage));
  }
}

TEST_CASE("a checkpoint of which any bit is another is passed over", "[programs]") {
  temporary_folder folder;
  const auto how = " --stages 4 --schedule pipedream";
  REQUIRE(
    run_program_in(folder, "train --steps 4" + tiny_model + saving + how).exit_code
    == 0);
  const auto manifest = folder.path() / "c/batch-4/manifest.json";
  const auto good = content_of(manifest);
  const auto refused = [&](std::size_t at) {
    if (std::isspace(static_cast<unsigned char>(good[at])))
      return;
    flip(manifest, static_cast<std::int64_t>(at));
    INFO(at << ": " << content_of(manifest).substr(at, 30));
    CHECK(run_program_in(folder, "checkpoint c").exit_code == 1);
    flip(manifest, static_cast<std::int64_t>(at));
  };
  dice random{7};
  for (int i = 0; i < 40; ++i)
    refused(
      static_cast<std::size_t>(random.number(0, static_cast<int>(good.size()) - 1)));
  // Another number of updates would be valid, if the checksum did not differ.
  const auto updates = good.find("\"updates\"");
  for (auto at = good.find_first_of("0123456789", updates);
       at < good.find(']', updates); at = good.find_first_of("0123456789", at + 1))
    refused(at);
  CHECK(run_program_in(folder, "checkpoint c").exit_code == 0);
}

TEST_CASE("the name of a checkpoint has a number of batches, without a sign") {
  CHECK(batches_of("c/batch-12") == 12);
  CHECK(batches_of("c/batch-0") == 0);
  for (const auto* const name :
       {"batch--3", "batch-+3", "batch-", "batch-3x", "3", "batch-08", "batch-00"})
    CHECK(batches_of(fs::path{"c"} / name) == -1);
}

TEST_CASE("a folder that cannot be listed to its end has no list of checkpoints") {
  const temporary_folder folder;
  for (const int batches : {2, 4}) {
    const auto name = "batch-" + std::to_string(batches);
    fs::create_directory(folder.path() / name);
    folder.write(name + "/manifest.json", "{}");
  }
  folder.write("batch-6", "a file");
  auto listed = list_folder(folder.path());
  CHECK_FALSE(listed.error);
  CHECK(listed.entries.size() == 3);
  CHECK(checkpoints_in(folder.path(), listed)
        == std::vector{folder.path() / "batch-4", folder.path() / "batch-2"});
  // The system has listed these entries, and fails at the next.
  listed.error = std::make_error_code(std::errc::io_error);
  CHECK_THROWS_WITH(
    checkpoints_in(folder.path(), listed),
    ContainsSubstring("cannot read the folder " + folder.path().string())
      && ContainsSubstring("Input/output error"));
  CHECK(checkpoints_in(folder.path() / "none").empty());
  CHECK(checkpoints_in(folder.path() / "batch-6").empty());
}

TEST_CASE("a folder that cannot be opened is told with the system's reason",
          "[programs]") {
  const temporary_folder folder;
  fs::create_symlink("loop", folder.path() / "loop");
  CHECK_THROWS_WITH(checkpoints_in(folder.path() / "loop"),
                    ContainsSubstring("Too many levels of symbolic links"));
  const std::string loop = " cannot read the folder loop (Too many levels of symbolic "
                           "links): make the folder readable, or name another folder";
  const auto refused = [&](const std::string& typed, const std::string& why) {
    const auto ran = run_program_in(folder, typed);
    CHECK(ran.exit_code != 0);
    CHECK_THAT(ran.err, ContainsSubstring(why));
  };
  refused("train --resume loop" + tiny_model, "--resume" + loop);
  for (const auto* const typed : {"--resume auto", "", "--resume none"})
    refused("train --checkpoint loop --checkpoint-every 1 " + (typed + tiny_model),
            "--checkpoint" + loop);
  refused("checkpoint loop", "cannot read the folder loop: Too many levels");
}

TEST_CASE("a manifest that cannot be read is told with the system's reason") {
  temporary_folder folder;
  CHECK_THROWS_WITH(read_manifest(folder.path() / "manifest.json"),
                    ContainsSubstring("cannot read")
                      && ContainsSubstring("No such file or directory"));
}

TEST_CASE("manifests that say what cannot be are passed over", "[programs]") {
  temporary_folder folder;
  REQUIRE(
    run_program_in(folder, "train --steps 4 --stages 2" + tiny_model + saving).exit_code
    == 0);
  const auto good =
    nlohmann::json::parse(content_of(folder.path() / "c/batch-4/manifest.json"));
  using other = std::pair<std::string, nlohmann::json>;
  for (const auto& [key, value] :
       {other{"batches", 5}, other{"batches", 4294967300}, other{"batches", 4.5},
        other{"older_versions", 2147483647}, other{"older_versions", -1},
        other{"state", {"mean", "mean"}}, other{"state", {"parameters-1"}},
        other{"state", 2}, other{"state", {""}}, other{"samples", 0},
        other{"samples", 37}, other{"updates", {4, -1}}, other{"updates", {1e300}}}) {
    auto bad = good;
    bad[key] = value;
    folder.write("c/batch-4/manifest.json", sealed(bad));
    const auto next =
      run_program_in(folder, "train --steps 5 --stages 2 --resume c" + tiny_model);
    INFO(key << " " << value);
    CHECK(next.exit_code == 0);
    CHECK_THAT(next.err,
               ContainsSubstring("checkpoint skipped: c/batch-4/manifest.json"));
  }
  // Changed values of a file's tensors, by JSON pointer.
  for (const auto& [key, value] :
       {other{"/shape/0", 6}, other{"/shape", {1 << 30, 1 << 30, 1 << 30}},
        other{"/shape", nlohmann::json::array()}, other{"/parameter", "nobody"},
        other{"/array", "moment-0"}, other{"/array", "parameters-7"},
        other{"/array", "parameters-"}, other{"/rows", {0, 9}}, other{"/rows", {3, 2}},
        other{"/rows", 7}, other{"/columns", {{0, 9}}}, other{"/first", 1},
        other{"/values", 1}, other{"/values", -1}, other{"/name", "nobody"},
        other{"/name", 4}}) {
    auto bad = good;
    auto& tensor = bad["files"][0]["tensors"][0];
    tensor[nlohmann::json::json_pointer(key)] = value;
    if (key == "/columns")
      tensor["rows"] = {0, 1};
    folder.write("c/batch-4/manifest.json", sealed(bad));
    const auto next =
      run_program_in(folder, "train --steps 5 --stages 2 --resume c" + tiny_model);
    INFO(key << " " << value << ": " << next.err);
    CHECK(next.exit_code == 0);
    CHECK_THAT(next.err, ContainsSubstring("checkpoint skipped: c/batch-4/"));
  }
  auto bad = good;
  bad["files"][0]["tensors"].erase(0);
  folder.write("c/batch-4/manifest.json", sealed(bad));
  CHECK_THAT(run_program_in(folder, "checkpoint c").err,
             ContainsSubstring("'transformer.wte.weight'"));
  bad = good;
  auto& tensors = bad["files"][0]["tensors"];
  CHECK(tensors.back()["array"] == "square");
  tensors.erase(tensors.size() - 1);
  folder.write("c/batch-4/manifest.json", sealed(bad));
  CHECK_THAT(run_program_in(folder, "checkpoint c").err, ContainsSubstring("square"));
  const auto text = good.dump();
  const auto nested = std::string(100'000, '[') + std::string(100'000, ']');
  for (const auto* const key : {"\"batches\":4", "\"older_versions\":0"}) {
    auto deep = text;
    const auto end = deep.find(key) + std::string{key}.size();
    folder.write("c/batch-4/manifest.json",
                 deep.replace(end - 1, 1, nested)); // replaces the number
    CHECK_THAT(run_program_in(folder, "checkpoint c").err, ContainsSubstring("nested"));
  }
  folder.write("c/batch-4/manifest.json", text);
  fs::resize_file(folder.path() / "c/batch-4/manifest.json", std::uintmax_t{1} << 32);
  CHECK_THAT(run_program_in(folder, "checkpoint c").err, ContainsSubstring("larger"));
  bad = good;
  bad["files"][1]["name"] = good["files"][0]["name"];
  folder.write("c/batch-4/manifest.json", sealed(bad));
  CHECK_THAT(run_program_in(folder, "checkpoint c").err, ContainsSubstring("twice"));
}

} // namespace troupe::checkpoint_files_test
