// Checkpoints as a user has them: what goes on from one, what is broken, what is
// killed.

#include "actors/checkpoints/checkpoint_manifest.hpp"
#include "messaging/links/checksum.hpp"
#include "tests/dice.hpp"
#include "tests/experiments/run_program.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/generators/catch_generators_range.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <nlohmann/json.hpp>

#include <cctype>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

using Catch::Matchers::ContainsSubstring;
namespace fs = std::filesystem;

namespace {

const std::string tiny =
  " --d-model 8 --heads 2 --seq 4 --vocab 7 --layers 4 --batch 9 "
  "--microbatches 4 --evaluate-samples 4 --quiet --json r.json ";
const std::string saving = " --checkpoint c --checkpoint-every 2 --keep 9 ";

/// Puts other bytes in the place of some of a file.
void flip(const fs::path& file, std::int64_t at) {
  std::fstream open{file, std::ios::binary | std::ios::in | std::ios::out};
  open.seekg(at);
  const auto old = static_cast<char>(open.get());
  open.seekp(at);
  open.put(static_cast<char>(old ^ 1));
}

/// A manifest whose sum is right, whatever it says.
std::string sealed(nlohmann::json manifest) {
  manifest.erase("xxh3");
  const auto text = manifest.dump();
  troupe::running_checksum sum;
  sum.add(std::as_bytes(std::span{text}));
  manifest["xxh3"] = troupe::text_of_sum(sum.value());
  return manifest.dump();
}

/// A safetensors file, read by its definition.
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

/// Where the values of a manifest's tensor are in the whole parameter, row by row.
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

TEST_CASE("a training goes on from a checkpoint to the file that it would have saved",
          "[programs]") {
  const auto* const how = GENERATE(
    "--schedule 1f1b --stages 2 --clip 0.5", "--schedule pipedream --stages 4",
    "--schedule 2bw --mesh data=2,pipe=2 --exchange zero1 --microbatches 8 --batch 18",
    "--schedule ampnet --stages 2 --clock virtual");
  // The later --batch and --microbatches would be a second value.
  auto common = tiny + how;
  if (common.find("--batch 18") != std::string::npos) {
    common.erase(common.find("--batch 9 "), 10);
    common.erase(common.find("--microbatches 4 "), 17);
  }
  temporary_folder folder;
  REQUIRE(
    run_program_in(folder, "train --steps 6 --save whole.safetensors" + common + saving)
      .exit_code
    == 0);
  fs::remove_all(folder.path() / "c/batch-6");
  const bool pauses = common.find("ampnet") != std::string::npos; // with checkpoints
  const auto rest =
    run_program_in(folder, "train --steps 6 --save rest.safetensors --resume c" + common
                             + (pauses ? saving : ""));
  INFO(rest.err);
  CHECK(rest.exit_code == 0);
  CHECK((content_of(folder.path() / "rest.safetensors")
         == content_of(folder.path() / "whole.safetensors")));
  const auto run =
    nlohmann::json::parse(content_of(folder.path() / "r.json"))["runs"][0];
  CHECK(run["steps"] == 6);
  CHECK(run["loss_samples"].back()
        == (pauses || common.find("18") == std::string::npos ? 54 : 108));
  CHECK(run["steps_before"] == 4);
}

TEST_CASE("a checkpoint that is broken is passed over, and said to be", "[programs]") {
  temporary_folder folder;
  const auto c = folder.path() / "c";
  REQUIRE(run_program_in(folder, "train --steps 4 --stages 2" + tiny + saving).exit_code
          == 0);
  CHECK(run_program_in(folder, "checkpoint c").exit_code == 0);
  const auto moment = c / "batch-4/stage-1.safetensors";
  const auto bytes = static_cast<std::int64_t>(fs::file_size(moment));
  const auto [name, breaks] = GENERATE_COPY(
    std::pair<std::string, int>{"cut short", 0}, std::pair<std::string, int>{"flip", 1},
    std::pair<std::string, int>{"no file", 2},
    std::pair<std::string, int>{"half a manifest", 3},
    std::pair<std::string, int>{"a manifest that names other files", 4});
  INFO(name);
  switch (breaks) {
  case 0:
    fs::resize_file(moment, static_cast<std::uintmax_t>(bytes - 1));
    break;
  case 1:
    flip(moment, bytes - 3);
    break;
  case 2:
    fs::remove(moment);
    break;
  case 3:
    fs::resize_file(c / "batch-4/manifest.json", 90);
    break;
  default: {
    auto manifest = content_of(c / "batch-4/manifest.json");
    manifest.replace(manifest.find("stage-1.safetensors"), 7, "../secre");
    folder.write("c/batch-4/manifest.json", manifest);
  }
  }
  const auto shown = run_program_in(folder, "checkpoint c");
  CHECK(shown.exit_code == 1);
  CHECK_THAT(shown.err, ContainsSubstring("c/batch-4/"));
  CHECK_THAT(shown.out, ContainsSubstring("c/batch-2: 2 steps"));
  const auto next =
    run_program_in(folder, "train --steps 5 --stages 2 --resume c" + tiny);
  CHECK(next.exit_code == 0);
  CHECK_THAT(next.err, ContainsSubstring("passed over: c/batch-4/"));
  const auto run =
    nlohmann::json::parse(content_of(folder.path() / "r.json"))["runs"][0];
  CHECK(run["steps_before"] == 2);
}

TEST_CASE("a manifest says where the values of each file belong", "[programs]") {
  const auto* const mesh =
    GENERATE("--stages 2", "--stages 2 --tied", "--mesh tensor=2,pipe=2",
             "--mesh data=2,pipe=2,tensor=2 --exchange zero1",
             "--mesh data=2,pipe=2 --exchange zero3", "--schedule pipedream --stages 4",
             "--model moe --experts 4 --mesh data=2,pipe=2,expert=2");
  temporary_folder folder;
  const auto ran =
    run_program_in(folder, std::string{"train --steps 2 --save w.safetensors "} + mesh
                             + tiny + saving);
  INFO(mesh << ": " << ran.err);
  REQUIRE(ran.exit_code == 0);
  const raw_safetensors whole{folder.path() / "w.safetensors"};
  const auto here = folder.path() / "c/batch-2";
  const auto manifest = nlohmann::json::parse(content_of(here / "manifest.json"));
  std::map<std::string, std::map<std::string, int>> known; // values, by array
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
  CHECK(known.size() == 3); // at the end nobody reads older versions
  for (const auto* const array : {"parameters", "moment-0", "moment-1"})
    for (const auto& [name, described] : whole.header.items())
      if (name != "__metadata__")
        CHECK(known[array][name] == static_cast<int>(whole.values(name).size()));
}

TEST_CASE("a folder of another training's checkpoints is not written to",
          "[programs]") {
  temporary_folder folder;
  const auto train = "train --steps 4 --stages 2" + tiny + saving;
  REQUIRE(run_program_in(folder, train).exit_code == 0);
  const auto again = run_program_in(folder, train);
  CHECK(again.exit_code == 2);
  CHECK_THAT(again.err, ContainsSubstring("c has checkpoints of another training"));
  folder.write("c/batch-4/manifest.json", "{}");
  fs::create_directories(folder.path() / "c/batch-9.unfinished");
  const auto longer =
    run_program_in(folder, "train --steps 3 --stages 2 --resume c" + tiny + saving);
  INFO(longer.err);
  CHECK(longer.exit_code == 0);
  CHECK(fs::exists(folder.path() / "c/batch-3"));
  CHECK_FALSE(fs::exists(folder.path() / "c/batch-4"));
  CHECK_FALSE(fs::exists(folder.path() / "c/batch-9.unfinished"));
}

TEST_CASE("a checkpoint has the versions that are still read", "[programs]") {
  temporary_folder folder;
  REQUIRE(run_program_in(folder, "train --steps 4 --stages 4 --schedule pipedream"
                                   + tiny + saving)
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
  REQUIRE(run_program_in(folder, "train --steps 4" + tiny + saving + how).exit_code
          == 0);
  const auto manifest = folder.path() / "c/batch-4/manifest.json";
  const auto good = content_of(manifest);
  dice random{7};
  for (int i = 0; i < 40; ++i) {
    const int at = random.number(0, static_cast<int>(good.size()) - 1);
    if (std::isspace(static_cast<unsigned char>(good[static_cast<std::size_t>(at)])))
      continue;
    flip(manifest, at);
    INFO(at << ": " << content_of(manifest).substr(static_cast<std::size_t>(at), 30));
    CHECK(run_program_in(folder, "checkpoint c").exit_code == 1);
    flip(manifest, at);
  }
  CHECK(run_program_in(folder, "checkpoint c").exit_code == 0);
}

TEST_CASE("manifests that say what cannot be are passed over", "[programs]") {
  temporary_folder folder;
  REQUIRE(run_program_in(folder, "train --steps 4 --stages 2" + tiny + saving).exit_code
          == 0);
  const auto good =
    nlohmann::json::parse(content_of(folder.path() / "c/batch-4/manifest.json"));
  using other = std::pair<std::string, nlohmann::json>;
  for (const auto& [key, value] :
       {other{"batches", 5}, other{"batches", 4294967300}, other{"batches", 4.5},
        other{"older_versions", 2147483647}, other{"older_versions", -1},
        other{"moments", 2147483647}, other{"samples", 0}, other{"samples", 37},
        other{"updates", {4, -1}}, other{"updates", {1e300}}}) {
    auto bad = good;
    bad[key] = value;
    folder.write("c/batch-4/manifest.json", sealed(bad));
    const auto next =
      run_program_in(folder, "train --steps 5 --stages 2 --resume c" + tiny);
    INFO(key << " " << value);
    CHECK(next.exit_code == 0);
    CHECK_THAT(next.err, ContainsSubstring("passed over: c/batch-4/manifest.json"));
  }
  // Of a file's tensors, by their pointers.
  for (const auto& [key, value] :
       {other{"/shape/0", 6}, other{"/shape", {1 << 30, 1 << 30, 1 << 30}},
        other{"/shape", nlohmann::json::array()}, other{"/parameter", "nobody"},
        other{"/array", "moment-2"}, other{"/array", "parameters-7"},
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
      run_program_in(folder, "train --steps 5 --stages 2 --resume c" + tiny);
    INFO(key << " " << value << ": " << next.err);
    CHECK(next.exit_code == 0);
    CHECK_THAT(next.err, ContainsSubstring("passed over: c/batch-4/"));
  }
  auto bad = good;
  bad["files"][0]["tensors"].erase(0);
  folder.write("c/batch-4/manifest.json", sealed(bad));
  CHECK_THAT(run_program_in(folder, "checkpoint c").err,
             ContainsSubstring("'transformer.wte.weight'"));
  bad = good;
  auto& tensors = bad["files"][0]["tensors"];
  CHECK(tensors.back()["array"] == "moment-1");
  tensors.erase(tensors.size() - 1);
  folder.write("c/batch-4/manifest.json", sealed(bad));
  CHECK_THAT(run_program_in(folder, "checkpoint c").err, ContainsSubstring("moment-1"));
  const auto text = good.dump();
  const auto nested = std::string(100'000, '[') + std::string(100'000, ']');
  for (const auto* const key : {"\"batches\":4", "\"moments\":2"}) {
    auto deep = text;
    const auto end = deep.find(key) + std::string{key}.size();
    folder.write("c/batch-4/manifest.json",
                 deep.replace(end - 1, 1, nested)); // in place of the number
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

TEST_CASE("what is no checkpoint stays as it is", "[programs]") {
  temporary_folder folder;
  const auto c = folder.path() / "c";
  fs::create_directories(c / "batch-1");
  fs::create_directories(c / "batch-7.unfinished");
  folder.write("c/batch-1/mine.txt", "data");
  folder.write("c/batch-7.unfinished/mine.txt", "data");
  folder.write("c/batch-3", "data");
  folder.write("c/batch-99999999999", "data");
  REQUIRE(run_program_in(folder, "train --steps 2 --stages 2 --checkpoint good "
                                 "--checkpoint-every 2"
                                   + tiny)
            .exit_code
          == 0);
  fs::create_symlink("../good/batch-2", c / "batch-2");
  const auto train = "train --steps 6 --stages 2 --resume c --checkpoint c "
                     "--checkpoint-every 2 --keep 1"
                     + tiny;
  CHECK(run_program_in(folder, train).exit_code == 0);
  CHECK(run_program_in(folder, "checkpoint good").exit_code == 0);
  CHECK_FALSE(fs::exists(c / "batch-4"));
  for (const auto* const mine : {"batch-1/mine.txt", "batch-7.unfinished/mine.txt",
                                 "batch-3", "batch-99999999999"})
    CHECK(content_of(c / mine) == "data");

  const auto in_the_way =
    run_program_in(folder, "train --steps 7 --stages 2 --resume c --checkpoint c "
                           "--checkpoint-every 1"
                             + tiny);
  CHECK(in_the_way.exit_code == 0);
  fs::create_directories(c / "batch-8");
  folder.write("c/batch-8/mine.txt", "data");
  const auto stopped =
    run_program_in(folder, "train --steps 8 --stages 2 --resume c --checkpoint c "
                           "--checkpoint-every 1"
                             + tiny);
  CHECK(stopped.exit_code == 1);
  CHECK_THAT(stopped.err, ContainsSubstring("batch-8 is in the way"));
  CHECK(content_of(c / "batch-8/mine.txt") == "data");
}

TEST_CASE("as many checkpoints stay as are to be kept", "[programs]") {
  temporary_folder folder;
  REQUIRE(run_program_in(folder, "train --steps 7 --stages 2 --checkpoint c "
                                 "--checkpoint-every 2 --keep 2"
                                   + tiny)
            .exit_code
          == 0);
  CHECK(fs::exists(folder.path() / "c/batch-7"));
  CHECK(fs::exists(folder.path() / "c/batch-6"));
  CHECK_FALSE(fs::exists(folder.path() / "c/batch-4"));
  CHECK(run_program_in(folder, "train --steps 2 --stages 2 --checkpoint d "
                               "--checkpoint-every 2147483647"
                                 + tiny)
          .exit_code
        == 0);
  CHECK(fs::exists(folder.path() / "d/batch-2"));
}

TEST_CASE("a disk that is full costs the checkpoint alone", "[programs]") {
  temporary_folder folder;
  const auto ran =
    run_program_in(folder, "train --steps 4 --stages 2" + tiny + saving, "ulimit -f 4");
  CHECK(ran.exit_code == 1);
  CHECK_THAT(ran.err, ContainsSubstring("no checkpoint: cannot write c/batch-2"));
  CHECK(fs::is_empty(folder.path() / "c"));
}

TEST_CASE("a training that is killed leaves whole checkpoints", "[programs]") {
  temporary_folder folder;
  const auto ran = run_shell_in(
    folder,
    "train --steps 100000 --stages 2 --checkpoint c --checkpoint-every 1" + tiny
      + "& while [ ! -e c/batch-30 ]; do :; done; kill -9 $!; wait; checkpoint c");
  INFO(ran.err);
  CHECK(ran.exit_code == 0);
  CHECK_THAT(ran.out, ContainsSubstring("whole"));
}

TEST_CASE("who cannot go on is told what can", "[programs]") {
  temporary_folder folder;
  REQUIRE(run_program_in(folder, "train --steps 4 --stages 2" + tiny + saving).exit_code
          == 0);
  const auto refused = [&](const std::string& typed, const std::string& why) {
    const auto ran = run_program_in(folder, "train " + typed);
    INFO(typed);
    CHECK(ran.exit_code == 2);
    CHECK_THAT(ran.err, ContainsSubstring(why));
  };
  refused("--steps 4 --stages 2 --resume c" + tiny, "say --steps 5 or more");
  refused("--steps 9 --stages 2 --optimizer sgd --resume c" + tiny,
          "with 2 values of state a parameter");
  refused("--steps 9 --stages 2 --resume none" + tiny,
          "there is no checkpoint in none");
  refused("--steps 9 --stages 2 --resume c --init w" + tiny, "give one of them");
  refused("--steps 9 --stages 2 --checkpoint c" + tiny, "give both");
  refused("--steps 9 --mesh data=2,pipe=2 --exchange hogwild --checkpoint c "
          "--checkpoint-every 2"
            + tiny,
          "hogwild updates data replicas one by one");
  auto other = tiny;
  other.replace(other.find("--batch 9"), 9, "--batch 8");
  refused("--steps 9 --stages 2 --resume c" + other, "say --batch 9");
}
