// SPDX-License-Identifier: BSD-3-Clause
// Inputs of interest that fuzzing has found, for files and options, as found.

#include "tests/fuzz/manifest.hpp"
#include "tests/fuzz/options.hpp"
#include "tests/fuzz/safetensors.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

namespace troupe::corpus_test {

TEST_CASE("fuzzing of options begins with those of a whole run") {
  troupe::typed_options typed;
  typed.nodes.nodes = "127.0.0.1:1";
  typed.run.device = "cuda:3,cpu";
  typed.mesh.axes = "data=2,pipe=2,tensor=2";
  const auto text = troupe::to_text(troupe::parse(typed, true).value());
  std::ifstream file{TROUPE_GOLDEN "/whole_options"};
  const std::string kept{std::istreambuf_iterator<char>{file}, {}};
  INFO("options have changed: the file is to have these\n" << text);
  const auto read = troupe::options_from(kept);
  REQUIRE(read);
  CHECK((troupe::to_text(*read) == text));
}

TEST_CASE("what fuzzing has found interesting in files and options does no harm") {
  using taker = std::function<void(std::span<const std::uint8_t>)>;
  const auto& [name, take] =
    GENERATE(std::pair<std::string, taker>{"manifest", fuzz::take_manifest},
             std::pair<std::string, taker>{"options", fuzz::take_options},
             std::pair<std::string, taker>{"safetensors", fuzz::take_safetensors});
  int files = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator{std::string{TROUPE_CORPUS} + "/" + name}) {
    std::ifstream file{entry.path(), std::ios::binary};
    const std::vector<std::uint8_t> bytes{std::istreambuf_iterator<char>{file}, {}};
    INFO(entry.path());
    REQUIRE_NOTHROW(take(bytes));
    ++files;
  }
  CHECK(files > 20);
}

} // namespace troupe::corpus_test
