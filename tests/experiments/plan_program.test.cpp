// SPDX-License-Identifier: BSD-3-Clause
// The program `plan`: problems made of a model, the table's files, and mistakes.

#include "tests/experiments/run_program.hpp"

#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <nlohmann/json.hpp>

#include <filesystem>
#include <set>
#include <string>

namespace troupe::plan_program_test {

using Catch::Approx;
using Catch::Matchers::ContainsSubstring;
using nlohmann::json;

namespace {

json planned(const std::string& words) {
  const temporary_folder folder;
  const auto ran = run_program_in(folder, "plan " + words);
  INFO(ran.err);
  REQUIRE(ran.exit_code == 0);
  return json::parse(ran.out);
}

} // namespace

TEST_CASE("a model's problem has the operations and bytes of its layers",
          "[programs][plan]") {
  // Images of 28 x 28 pixels, two hidden layers of 64 units, and ten classes. One
  // device takes three products of each matrix, at 100 operations a nanosecond.
  const std::string model = "--model mlp --layers 3 --d-model 64 --batch 32 ";
  const double products = 2 * (784 * 64 + 64 * 64 + 64 * 10);
  const auto alone = planned(model + "--devices 1 --planner pipedream");
  CHECK(alone["cost"] == Approx(3 * 32 * products / 1e11).epsilon(0.05));
  REQUIRE(alone["plan"].size() == 1);
  // Two devices on a slow link: replicas would exchange all parameters, and a cut sends
  // 64 values of each sample, so the first layer stands alone.
  const auto cut = planned(model + "--devices 2 --bandwidth 1e9 --planner pipedream");
  REQUIRE(cut["plan"].size() == 2);
  CHECK(cut["plan"][0]["replicas"] == 1);
  CHECK(cut["cost"] >= 2 * 32 * 64 * 4 / 1e9 - 1e-12);
  // One byte: nothing fits.
  CHECK(planned(model + "--devices 2 --memory-limit 1 --planner pipedream")["cost"]
          .is_null());
}

TEST_CASE("a table of planners is written as JSON and as a page", "[programs][plan]") {
  const temporary_folder folder;
  const auto ran = run_program_in(
    folder, "plan --model gpt --layers 2 --d-model 16 --heads 2 --devices "
            "2 --planners all --json r.json --page p.html");
  INFO(ran.err);
  REQUIRE(ran.exit_code == 0);
  const auto told = json::parse(content_of(folder.path() / "r.json"));
  const auto page = content_of(folder.path() / "p.html");
  CHECK_THAT(page, ContainsSubstring("<!doctype html>"));
  std::size_t count = 0;
  for (const auto& row : told["planners"]) {
    const std::string name = row["planner"];
    INFO(name);
    ++count;
    CHECK_THAT(ran.out, ContainsSubstring("\n" + name));
    CHECK_THAT(page, ContainsSubstring(name));
    if (!row["judged"].is_null())
      CHECK(row["judged"].get<double>() >= told["optimum"].get<double>() * (1 - 1e-12));
  }
  CHECK(count > 5);
}

TEST_CASE("the document's case of each kind is planned without a warning",
          "[programs][plan]") {
  const auto document = content_of(std::filesystem::path{TROUPE_GOLDEN} / ".." / ".."
                                   / "docs" / "planners.md");
  const std::string begin = "```json\n", end = "```\n";
  std::set<std::string> kinds;
  for (auto at = document.find(begin); at != document.npos;
       at = document.find(begin, at + 1)) {
    const auto first = at + begin.size();
    const temporary_folder folder;
    folder.write("case.json",
                 document.substr(first, document.find(end, first) - first));
    const auto kind = json::parse(content_of(folder.path() / "case.json")).at("kind");
    INFO(kind);
    kinds.insert(kind.get<std::string>());
    const auto ran = run_program_in(folder, "plan --case case.json --planners all "
                                            "--json r.json");
    CHECK(ran.exit_code == 0);
    CHECK(ran.err.empty());
    const auto told = json::parse(content_of(folder.path() / "r.json"));
    CHECK_FALSE(told.at("planners").front().at("cost").is_null());
  }
  CHECK(kinds.size() == 10);
}

TEST_CASE("a wrong request of a plan says what is allowed", "[programs][plan]") {
  const temporary_folder folder;
  folder.write("c.json", "{}");
  folder.write("big.json", R"({"kind": "pipedream", "memory": 1e999})");
  for (const auto& [words, sentence] : std::vector<std::pair<std::string, std::string>>{
         {"--planner pipedream", "a plan needs --case FILE or --model NAME"},
         {"--model gpt", "a plan needs --case FILE or --model NAME"},
         {"--model gtp --planner pipedream", "did you mean 'gpt'?"},
         {"--model gpt --planner pipedrem", "--planner takes one of pipedream"},
         {"--model gpt --heads 3 --planner pipedream", "give --heads that divides"},
         {"--model gpt --devices 0 --planner pipedream", "give 1 to 1024 devices"},
         {"--model gpt --batch 0 --planner pipedream", "has 1 to 1,048,576 samples"},
         {"--model gpt --bandwidth 0 --planner pipedream", "numbers of bytes above 0"},
         {"--model gpt --case c.json --planner pipedream", "excludes"},
         {"--case c.json --planner pipedream --devices 3", "--model"},
         {"--case c.json --planners all --json c.json",
          "give each option another file"},
         {"--case big.json --planner pipedream", "a number is too large"},
         {"--case c.json --planner pipedream", "c.json"},
         {"--case none.json --planner pipedream", "none.json"}}) {
    INFO(words);
    const auto ran = run_program_in(folder, "plan " + words);
    CHECK(ran.exit_code == 2);
    CHECK(ran.out.empty());
    CHECK_THAT(ran.err, ContainsSubstring(sentence));
  }
  CHECK(content_of(folder.path() / "c.json") == "{}");
}

} // namespace troupe::plan_program_test
