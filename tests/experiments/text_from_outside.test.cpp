// SPDX-License-Identifier: BSD-3-Clause
// File names that are not UTF-8, which a file system allows. All files that a run
// leaves must be valid.

#include "tests/experiments/run_program.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <nlohmann/json.hpp>

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <string>

namespace troupe::text_from_outside_test {

using Catch::Matchers::ContainsSubstring;
using nlohmann::json;

namespace {

const std::string latin_1 = "caf\xe9.bin";
const std::string replaced = "caf\xef\xbf\xbd.bin"; // with U+FFFD

const std::string tiny =
  " --d-model 8 --heads 2 --seq 4 --layers 2 --stages 2 --batch 4 "
  "--microbatches 2 --evaluate-samples 4 --quiet ";

/// Returns a weight file's metadata of the run.
json metadata_of(const std::filesystem::path& file) {
  const auto content = content_of(file);
  std::uint64_t length = 0;
  std::memcpy(&length, content.data(), sizeof length);
  return json::parse(content.substr(sizeof length, length)).at("__metadata__");
}

} // namespace

TEST_CASE(
  "a run on a file whose name is Latin-1 leaves all behind that it was asked for",
  "[programs][utf8]") {
  temporary_folder folder;
  folder.write(latin_1, std::string(400, '\0'));
  const auto ran = run_program_in(
    folder,
    "train --steps 2 --data tokens:" + latin_1
      + " --save w.safetensors --checkpoint c --checkpoint-every 2 --json r.json "
        "--report r --tensorboard t"
      + tiny);
  INFO(ran.err);
  CHECK(ran.exit_code == 0);
  CHECK(ran.err.empty());
  CHECK(metadata_of(folder.path() / "w.safetensors")["--data"] == "tokens:" + replaced);
  const auto results = json::parse(content_of(folder.path() / "r.json"));
  CHECK_THAT(results["data"]["description"].get<std::string>(),
             ContainsSubstring(replaced + ", 200 tokens"));
  CHECK(json::parse(content_of(folder.path() / "r/results.json")) == results);
  const auto manifest =
    json::parse(content_of(folder.path() / "c/batch-2/manifest.json"));
  CHECK(manifest["training"]["options"]["--data"] == "tokens:" + replaced);
  CHECK(manifest["training"]["data"]["bytes"] == 400);
  CHECK(run_program_in(folder, "checkpoint c").exit_code == 0);
  // TensorBoard reads UTF-8 alone.
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator{folder.path() / "t"})
    if (entry.is_regular_file())
      CHECK_THAT(content_of(entry.path()), ContainsSubstring("tokens:" + replaced));
  // The checkpoint stores the name in a changed form, so the user must name the data;
  // the data itself is recognised.
  const auto unnamed = run_program_in(folder, "train --steps 3 --resume c" + tiny);
  CHECK(unnamed.exit_code == 2);
  CHECK_THAT(unnamed.err, ContainsSubstring("cannot read"));
  CHECK_THAT(unnamed.err,
             ContainsSubstring("c/batch-2 says --data tokens:" + replaced
                               + ", with U+FFFD in place of bytes that are not UTF-8: "
                                 "name the data with --data\n"));
  CHECK(
    run_program_in(folder, "train --steps 3 --resume c --data tokens:" + latin_1 + tiny)
      .exit_code
    == 0);
}

TEST_CASE("a schedule's file may have any name too", "[programs][utf8]") {
  temporary_folder folder;
  REQUIRE(run_program_in(folder, "simulate --schedule 1f1b --stages 2 --microbatches 2 "
                                 "--steps 1 --quiet --export 'na\xefve.csv'")
            .exit_code
          == 0);
  const auto ran =
    run_program_in(folder, "train --steps 1 --schedule 'file:na\xefve.csv' "
                           "--json r.json --report r --tensorboard t"
                             + tiny);
  INFO(ran.err);
  CHECK(ran.exit_code == 0);
  const auto results = json::parse(content_of(folder.path() / "r.json"));
  CHECK(results["runs"][0]["ending"] == "finished");
}

TEST_CASE("a name that is not UTF-8 is refused before nodes are sent it",
          "[programs][utf8]") {
  temporary_folder folder;
  folder.write(latin_1, std::string(400, '\0'));
  const auto ran =
    run_program_in(folder, "train --nodes 127.0.0.1:1 --data tokens:" + latin_1 + tiny);
  CHECK(ran.exit_code == 2);
  CHECK_THAT(ran.err, ContainsSubstring("in UTF-8"));
}

} // namespace troupe::text_from_outside_test
